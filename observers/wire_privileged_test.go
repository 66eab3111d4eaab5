//go:build privileged

package observers

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/mdlayher/socket"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The ends of a test's wire: the near end sends without ARP, the far end takes
// any address for its own, as the run's fixture has it.
var (
	nearMAC = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	farMAC  = net.HardwareAddr{2, 0, 0, 0, 0, 1}
)

// newWire makes two fresh namespaces joined by a veth pair.
func newWire(t *testing.T) *Wire {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	w := &Wire{Name: "place", Place: filepath.Join(dir, "place.net"), Link: "up0", World: filepath.Join(dir, "world.net"), Peer: "down0"}
	for _, path := range []string{w.World, w.Place} {
		must(t, os.WriteFile(path, nil, 0o600))
		inFreshNamespace(t, func() error {
			t.Cleanup(func() { must(t, unix.Unmount(path, unix.MNT_DETACH)) })
			return unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
		})
	}
	far, err := netns.GetFromPath(w.World)
	must(t, err)
	defer far.Close()
	near, err := netns.GetFromPath(w.Place)
	must(t, err)
	defer near.Close()
	nearLinks, err := netlink.NewHandleAt(near)
	must(t, err)
	defer nearLinks.Close()
	farLinks, err := netlink.NewHandleAt(far)
	must(t, err)
	defer farLinks.Close()

	must(t, nearLinks.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: w.Link, HardwareAddr: nearMAC, TxQLen: -1},
		PeerName:  w.Peer, PeerHardwareAddr: farMAC, PeerNamespace: netlink.NsFd(far),
	}))
	up, err := nearLinks.LinkByName(w.Link)
	must(t, err)
	down, err := farLinks.LinkByName(w.Peer)
	must(t, err)
	must(t, errors.Join(
		nearLinks.LinkSetIP6AddrGenMode(up, 1), nearLinks.LinkSetARPOff(up), // 1: IN6_ADDR_GEN_MODE_NONE
		farLinks.LinkSetIP6AddrGenMode(down, 1),
	))
	for _, ip := range []string{"198.18.0.2/30", "fd00:7e57::2/126"} {
		address, err := netlink.ParseAddr(ip)
		must(t, err)
		address.Flags = unix.IFA_F_NODAD
		must(t, nearLinks.AddrAdd(up, address))
	}
	must(t, errors.Join(farLinks.LinkSetUp(down), nearLinks.LinkSetUp(up))) // in this order: the near end finds its carrier
	for _, gateway := range []string{"198.18.0.1", "fd00:7e57::1"} {
		ip := net.ParseIP(gateway)
		must(t, nearLinks.NeighAdd(&netlink.Neigh{LinkIndex: up.Attrs().Index, IP: ip, HardwareAddr: farMAC, State: netlink.NUD_PERMANENT}))
		all := &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
		if ip.To4() != nil {
			all = &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
		}
		must(t, nearLinks.RouteAdd(&netlink.Route{LinkIndex: up.Attrs().Index, Dst: all, Gw: ip}))
	}
	return w
}

// inFreshNamespace runs f on a thread with a network namespace of its own.
func inFreshNamespace(t *testing.T, f func() error) {
	t.Helper()
	result := make(chan error)
	go onSideThread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- f()
	})
	must(t, <-result)
}

// from opens a socket inside the wire's place.
func from(t *testing.T, w *Wire, family, kind, protocol int) *socket.Conn {
	t.Helper()
	place, err := os.Open(w.Place)
	must(t, err)
	defer place.Close()
	conn, err := socket.Socket(family, kind, protocol, "test", &socket.Config{NetNS: int(place.Fd())})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func sockaddr(to netip.Addr, port int) unix.Sockaddr {
	if to.Is4() {
		return &unix.SockaddrInet4{Addr: to.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: to.As16(), Port: port}
}
