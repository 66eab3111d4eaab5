package observers

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

// Wire is the one link that leads out of a place: a veth pair whose near end is
// in the place's network namespace and whose far end is in another one of the
// harness's. It is used by pointer: observers of the same wire take turns with
// their controls, so that none counts another's.
type Wire struct {
	Name  string // the place's name in reports
	Place string // bind file of the near end's network namespace
	Link  string // the near end's name inside it
	World string // bind file of the far end's network namespace
	Peer  string // the far end's name inside it

	controls sync.Mutex
	sent     tally // frames of all controls, with their Ethernet headers
}

// The control datagram: its text says what it is to whoever captures it, and
// its port is discard (RFC 863).
const (
	controlText = "tenwalls control datagram"
	controlPort = 9
)

// controlBytes is the length of the control datagram's IP packet: 20 bytes of
// header for IPv4 (RFC 791), 40 for IPv6 (RFC 8200), 8 for UDP (RFC 768).
func controlBytes(to netip.Addr) int64 {
	if to.Unmap().Is4() {
		return 20 + 8 + int64(len(controlText))
	}
	return 40 + 8 + int64(len(controlText))
}

// etherHeader is the length of an Ethernet header, which link statistics count.
const etherHeader = 14

// send puts one control datagram for each address on the wire, from inside the
// place. The caller holds w.controls.
func (w *Wire) send(ctx context.Context, to ...netip.Addr) error {
	place, err := os.Open(w.Place)
	if err != nil {
		return fmt.Errorf("enter place %s: %w", w.Name, err)
	}
	errs := []error{
		w.sendFrom(ctx, place, unix.AF_INET, to),
		w.sendFrom(ctx, place, unix.AF_INET6, to),
		place.Close(),
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("send control datagram from place %s: %w", w.Name, err)
	}
	return nil
}

// sendFrom sends to the addresses of one family.
func (w *Wire) sendFrom(ctx context.Context, place *os.File, family int, to []netip.Addr) (err error) {
	var conn *socket.Conn
	for _, address := range to {
		address = address.Unmap()
		var sockaddr unix.Sockaddr
		switch {
		case family == unix.AF_INET && address.Is4():
			sockaddr = &unix.SockaddrInet4{Port: controlPort, Addr: address.As4()}
		case family == unix.AF_INET6 && address.Is6():
			sockaddr = &unix.SockaddrInet6{Port: controlPort, Addr: address.As16()}
		default:
			continue
		}
		if conn == nil {
			conn, err = socket.Socket(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP, "control", &socket.Config{NetNS: int(place.Fd())})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, conn.Close()) }()
		}
		if err := conn.Sendto(ctx, []byte(controlText), 0, sockaddr); err != nil {
			return fmt.Errorf("to %s: %w", address, err)
		}
		w.sent = w.sent.add(tally{1, etherHeader + controlBytes(address)})
	}
	return nil
}
