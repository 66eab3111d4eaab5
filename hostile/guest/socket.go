package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// patience bounds each wait for the network: nine of them, each unanswered, still
// fit into the wall clock.
const patience = 700 * time.Millisecond

// errSilence is a network that does not answer within patience.
var errSilence = errors.New("no answer in " + patience.String())

// socketSpec is a socket to make, in the words of socket(2).
type socketSpec struct {
	name                string // "AF_INET, SOCK_STREAM"
	family, kind, proto int
}

// open makes the socket, which is the first act of every attempt to connect,
// and claims its refusal. The caller closes what it gets.
func (p *Probe) openSocket(s socketSpec, where behind) (fd int, ok bool) {
	call := "socket(" + s.name + ")"
	p.Reached(call, "nothing else is needed")
	kind := s.kind | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	args := [6]uintptr{uintptr(s.family), uintptr(kind), uintptr(s.proto)}
	if p.refusedAt(call, unix.SYS_SOCKET, inChild(unix.SYS_SOCKET, args, childTimeout), where) {
		return -1, false
	}
	fd, err := unix.Socket(s.family, kind, s.proto)
	if err != nil {
		p.refusedBy(call, unix.SYS_SOCKET, errnoOf(err), where)
		return -1, false
	}
	return fd, true
}

// ofFamily is the behind of socket(2) once the filter let it through: a family
// that the guest kernel does not have, or a capability that we do not have.
func ofFamily(errno syscall.Errno) (hostile.Place, string) {
	switch errno {
	case unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT:
		if refused, _, note := filterAnswer(unix.SYS_SOCKET); !refused {
			return hostile.GuestKernel, "the filter lets the call through (" + note + "), and the kernel has no such family or protocol"
		}
	case unix.EPERM, unix.EACCES:
		return byNoCapability("CAP_NET_RAW")(unix.EPERM)
	}
	return nowhere(errno)
}

// address parses "192.0.2.1:80" or "[2001:db8::1]:80"; what is no address ends
// the route with a failed claim.
func address(s string) netip.AddrPort {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		panic(fmt.Errorf("address %q: %w", s, err))
	}
	return a
}

// sockaddr gives the address for a socket of its own family: a mapped IPv4
// address stays one of IPv6.
func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// connect connects a non-blocking socket and returns it as a file whose reads
// and writes end at the deadline. The error is an errno, or errSilence.
func connect(fd int, to unix.Sockaddr) (*os.File, error) {
	err := unix.Connect(fd, to)
	if err != nil && err != unix.EINPROGRESS {
		return nil, errors.Join(err, unix.Close(fd))
	}
	f := os.NewFile(uintptr(fd), "socket")
	if derr := f.SetDeadline(time.Now().Add(patience)); derr != nil {
		return nil, errors.Join(derr, f.Close())
	}
	if err == nil {
		return f, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var result error
	err = raw.Write(func(fd uintptr) bool { // comes again each time the socket says it is writable
		var code int
		if code, result = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); result != nil {
			return true
		}
		if code != 0 {
			result = syscall.Errno(code)
			return true
		}
		_, notYet := unix.Getpeername(int(fd))
		return notYet == nil
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilence
	}
	if err = errors.Join(err, result); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unreached claims that the network refused, or that it kept silent.
func (p *Probe) unreached(call string, trap uintptr, err error, where behind) {
	switch errno := errnoOf(err); {
	case errors.Is(err, errSilence), errors.Is(err, os.ErrDeadlineExceeded), errno == unix.ETIMEDOUT:
		_, note := where(unix.ETIMEDOUT)
		p.Refused(hostile.ETIMEDOUT, hostile.Unknown, call, 0, "no answer in "+patience.String()+": "+note)
	case errno != 0:
		p.refusedBy(call, trap, errno, where)
	default:
		p.Failed(call + ": " + err.Error())
	}
}

// send sends one datagram over a socket of that kind and returns the open
// socket when it was taken.
func (p *Probe) send(s socketSpec, to netip.AddrPort, payload []byte) (fd int, ok bool) {
	fd, ok = p.openSocket(s, ofFamily)
	if !ok {
		return -1, false
	}
	call := fmt.Sprintf("sendto(%s, %d bytes)", to, len(payload))
	p.Reached(call, "the socket is there")
	if err := unix.Sendto(fd, payload, 0, sockaddr(to)); err != nil {
		p.unreached(call, unix.SYS_SENDTO, err, byRoutes(to.Addr()))
		unix.Close(fd) //nolint:errcheck,gosec // nothing was sent
		return -1, false
	}
	return fd, true
}

// dial connects to an address over TCP and claims the refusal.
func (p *Probe) dial(to netip.AddrPort) (f *os.File, call string, ok bool) {
	family, name := unix.AF_INET, "AF_INET, SOCK_STREAM"
	if !to.Addr().Is4() {
		family, name = unix.AF_INET6, "AF_INET6, SOCK_STREAM"
	}
	fd, ok := p.openSocket(socketSpec{name, family, unix.SOCK_STREAM, 0}, ofFamily)
	if !ok {
		return nil, "", false
	}
	call = "connect(" + to.String() + ")"
	p.Reached(call, "the socket is there")
	f, err := connect(fd, sockaddr(to))
	if err != nil {
		p.unreached(call, unix.SYS_CONNECT, err, byRoutes(to.Addr()))
		return nil, "", false
	}
	return f, call, true
}

// exchange writes a request and reads what comes back, to at most 64 KiB.
func exchange(f *os.File, request string) (n int64, note string) {
	if _, err := f.WriteString(request); err != nil {
		return 0, "connected; write: " + err.Error()
	}
	var text strings.Builder
	buf := make([]byte, 4096)
	for n < 64<<10 {
		m, err := f.Read(buf)
		n += int64(m)
		if text.Len() < 256 {
			text.Write(buf[:min(m, 256)])
		}
		if err != nil || m == 0 {
			break
		}
	}
	return n, fmt.Sprintf("connected; read %q", text.String())
}
