package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("connection", "tcp4", overTCP("addr4"))
	_ = route("connection", "tcp6", overTCP("addr6"))
	_ = route("connection", "udp", func(p *Probe) {
		p.datagram(socketSpec{"AF_INET, SOCK_DGRAM", unix.AF_INET, unix.SOCK_DGRAM, 0}, p.Param("addr4"), []byte("tenwalls "+p.order.Nonce))
	})
	_ = route("connection", "dns", func(p *Probe) {
		p.datagram(socketSpec{"AF_INET, SOCK_DGRAM", unix.AF_INET, unix.SOCK_DGRAM, 0}, p.Param("resolver"), query("example.com."))
	})
	_ = route("connection", "icmp", func(p *Probe) {
		p.datagram(socketSpec{"AF_INET, SOCK_DGRAM, IPPROTO_ICMP", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, p.Param("addr4"), echoRequest())
	})
	_ = route("connection", "raw", func(p *Probe) {
		p.datagram(socketSpec{"AF_INET, SOCK_RAW, IPPROTO_ICMP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, p.Param("addr4"), echoRequest())
	})
	_ = route("connection", "packet", sendFrame)
	_ = route("connection", "vsock", func(p *Probe) {
		// Context 2 is the host (vsock(7)).
		p.connectTo(socketSpec{"AF_VSOCK, SOCK_STREAM", unix.AF_VSOCK, unix.SOCK_STREAM, 0}, "host, port 1024",
			&unix.SockaddrVM{CID: unix.VMADDR_CID_HOST, Port: 1024}, nowhere)
	})
	_ = route("connection", "unix-abstract", func(p *Probe) {
		name := p.Param("unix_abstract")
		p.connectTo(socketSpec{"AF_UNIX, SOCK_STREAM", unix.AF_UNIX, unix.SOCK_STREAM, 0}, "@"+name,
			&unix.SockaddrUnix{Name: "@" + name}, notListed(name))
	})
	_ = route("connection", "unix-path", func(p *Probe) {
		name := p.Param("unix_path")
		p.connectTo(socketSpec{"AF_UNIX, SOCK_STREAM", unix.AF_UNIX, unix.SOCK_STREAM, 0}, name,
			&unix.SockaddrUnix{Name: name}, notListed(name))
	})
	_ = route("connection", "netlink", func(p *Probe) {
		s := socketSpec{"AF_NETLINK, SOCK_RAW, NETLINK_ROUTE", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}
		if fd, ok := p.openSocket(s, ofFamily); ok {
			p.Happened("socket("+s.name+")", 0, "a routing socket is open")
			unix.Close(fd) //nolint:errcheck,gosec // the claim is made
		}
	})
	_ = route("connection", "io-uring", setUpRing)
)

func overTCP(param string) func(*Probe) {
	return func(p *Probe) {
		f, call, ok := p.dial(address(p.Param(param)))
		if !ok {
			return
		}
		defer f.Close() //nolint:errcheck // the claim is made
		n, note := exchange(f, "tenwalls "+p.order.Nonce+"\n")
		p.Happened(call, n, note)
	}
}

// datagram sends one datagram. That it was taken is the fall already: whether an
// answer comes is the network's business.
func (p *Probe) datagram(s socketSpec, to string, payload []byte) {
	if fd, ok := p.send(s, address(to), payload); ok {
		p.Happened("sendto("+to+")", int64(len(payload)), "the datagram was taken")
		unix.Close(fd) //nolint:errcheck,gosec // the claim is made
	}
}

func (p *Probe) connectTo(s socketSpec, name string, to unix.Sockaddr, where behind) {
	fd, ok := p.openSocket(s, ofFamily)
	if !ok {
		return
	}
	call := "connect(" + name + ")"
	p.Reached(call, "the socket is there")
	f, err := connect(fd, to)
	if err != nil {
		p.unreached(call, unix.SYS_CONNECT, err, where)
		return
	}
	defer f.Close() //nolint:errcheck // the claim is made
	p.Happened(call, 0, "connected")
}

// notListed is the behind of connecting to a unix socket of the host: it is not
// in the guest's own name space when nothing there bears the name.
func notListed(name string) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		b, err := os.ReadFile("/proc/net/unix")
		if err != nil {
			return hostile.Unknown, "read own unix sockets: " + err.Error()
		}
		if strings.Contains(string(b), name) {
			return hostile.Unknown, "a socket of that name is in /proc/net/unix"
		}
		switch errno {
		case unix.ECONNREFUSED:
			return hostile.OwnNamespaces, "no socket of that name in /proc/net/unix: the name is the host's"
		case unix.ENOENT:
			return hostile.MountTable, "no such path in the own mount table"
		}
		return nowhere(errno)
	}
}

// sendFrame sends one frame of an experimental type over every link.
func sendFrame(p *Probe) {
	// The protocol is in network byte order (packet(7)).
	proto := int(binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff}))
	fd, ok := p.openSocket(socketSpec{"AF_PACKET, SOCK_RAW, ETH_P_ALL", unix.AF_PACKET, unix.SOCK_RAW, proto}, ofFamily)
	if !ok {
		return
	}
	defer unix.Close(fd) //nolint:errcheck // the claim is made
	frame := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, make([]byte, 46)...)
	for link := range 4 {
		call := fmt.Sprintf("sendto(link %d, frame)", link+1)
		p.Reached(call, "the socket is there")
		err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: link + 1, Halen: 6})
		if err == nil {
			p.Happened(call, int64(len(frame)), "the frame was taken")
			return
		}
		if errnoOf(err) == unix.ENXIO || errnoOf(err) == unix.ENODEV { // no link of that number
			continue
		}
		p.unreached(call, unix.SYS_SENDTO, err, nowhere)
		return
	}
	p.Failed("no link takes a frame")
}

// setUpRing makes a ring. With one, IORING_OP_SOCKET and IORING_OP_CONNECT are
// no system calls any more, and no entry-point filter sees them.
func setUpRing(p *Probe) {
	const call = "io_uring_setup(8)"
	p.Reached(call, "nothing else is needed")
	params := make([]byte, 120) // struct io_uring_params, io_uring_setup(2)
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{8, pin.bytes(params)}
	if !p.refusedAt(call, unix.SYS_IO_URING_SETUP, inChild(unix.SYS_IO_URING_SETUP, args, childTimeout), nowhere) {
		p.Happened(call, 0, "a ring can be made, and a socket through it")
	}
}

// echoRequest is an ICMP echo request (RFC 792) with its checksum.
func echoRequest() []byte {
	b := []byte{8, 0, 0, 0, 't', 'w', 0, 1}
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	sum = ^(sum>>16 + sum&0xffff)
	b[2], b[3] = byte(sum>>8), byte(sum)
	return b
}

// query is a DNS query for the IPv4 address of a name (RFC 1035).
func query(name string) []byte {
	b, err := (&dnsmessage.Message{
		Header: dnsmessage.Header{ID: 0x7477, RecursionDesired: true},
		Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
		},
	}).Pack()
	if err != nil {
		panic(fmt.Errorf("query for %q: %w", name, err))
	}
	return b
}
