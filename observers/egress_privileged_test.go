//go:build privileged

package observers

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/nftables"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// newTestEgress is an observer over a fresh wire whose control has passed.
func newTestEgress(t *testing.T) (*Egress, *Wire) {
	t.Helper()
	w := newWire(t)
	e, err := NewEgress(w)
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	must(t, e.For("place", []netip.Addr{egressV4, egressV6}))
	c := e.Control(t.Context())
	if !c.Passed {
		t.Fatalf("control: %+v", c)
	}
	NewWithT(t).Expect(c.Seen).To(Equal("198.18.1.1: 1 packets, 53 bytes; fd00:7e57::1:1: 1 packets, 73 bytes"))
	return e, w
}

// ipv4 is a packet that a raw or packet socket sends as it is: a header without
// options and eight bytes behind it.
func ipv4(to netip.Addr) []byte {
	packet := make([]byte, 28)
	packet[0], packet[3], packet[8], packet[9] = 0x45, 28, 64, unix.IPPROTO_UDP
	copy(packet[12:], []byte{198, 18, 0, 2})
	copy(packet[16:], to.AsSlice())
	return packet
}

func frame(protocol []byte, packet []byte) []byte {
	f := append([]byte{}, farMAC...)
	f = append(f, nearMAC...)
	return append(append(f, protocol...), packet...)
}

// Each way to send, and what one packet of it must read.
func TestEveryWayOutIsCounted(t *testing.T) {
	datagram := func(to netip.Addr, family int) func(*testing.T, *Wire) {
		return func(t *testing.T, w *Wire) {
			must(t, from(t, w, family, unix.SOCK_DGRAM, 0).Sendto(t.Context(), []byte("12345678"), 0, sockaddr(to, 53)))
		}
	}
	connect := func(to netip.Addr, family int) func(*testing.T, *Wire) {
		return func(t *testing.T, w *Wire) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // nobody answers
			defer cancel()
			if _, err := from(t, w, family, unix.SOCK_STREAM, 0).Connect(ctx, sockaddr(to, 443)); err == nil {
				t.Fatal("somebody answered")
			}
		}
	}
	packet := func(claimed uint16, bypass bool, bytes []byte) func(*testing.T, *Wire) {
		return func(t *testing.T, w *Wire) {
			conn := from(t, w, unix.AF_PACKET, unix.SOCK_RAW, 0)
			if bypass {
				must(t, conn.SetsockoptInt(unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1))
			}
			must(t, conn.Sendto(t.Context(), bytes, 0, &unix.SockaddrLinklayer{Ifindex: linkIndex(t, w), Protocol: claimed}))
		}
	}
	ip, arp := []byte{8, 0}, binary.NativeEndian.Uint16([]byte{8, 6})
	for name, c := range map[string]struct {
		send  func(*testing.T, *Wire)
		to    netip.Addr
		bytes int64
	}{
		"udp":            {datagram(egressV4, unix.AF_INET), egressV4, 36},
		"udp6":           {datagram(egressV6, unix.AF_INET6), egressV6, 56},
		"mapped":         {datagram(netip.AddrFrom16(egressV4.As16()), unix.AF_INET6), egressV4, 36},
		"tcp":            {connect(egressV4, unix.AF_INET), egressV4, 60},
		"tcp6":           {connect(egressV6, unix.AF_INET6), egressV6, 80},
		"packet":         {packet(0, false, frame(ip, ipv4(egressV4))), egressV4, 28},
		"packet bypass":  {packet(0, true, frame(ip, ipv4(egressV4))), egressV4, 28},
		"packet as arp":  {packet(arp, false, frame(ip, ipv4(egressV4))), egressV4, 28},
		"packet in vlan": {packet(0, false, frame([]byte{0x81, 0, 0, 5, 8, 0}, ipv4(egressV4))), egressV4, 28},
		"icmp": {func(t *testing.T, w *Wire) {
			must(t, from(t, w, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP).Sendto(t.Context(), []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}, 0, sockaddr(egressV4, 0)))
		}, egressV4, 28},
		"raw header": {func(t *testing.T, w *Wire) {
			must(t, from(t, w, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW).Sendto(t.Context(), ipv4(egressV4), 0, sockaddr(egressV4, 0)))
		}, egressV4, 28},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e, w := newTestEgress(t)
			watch, err := e.Watch(t.Context(), Subject{Place: "place"})
			g.Expect(err).NotTo(HaveOccurred())
			c.send(t, w)
			must(t, eventually(func() error {
				watch.Ended()
				if watch.(*egressWatch).seen.Values["packets"].After == 0 {
					return errors.New("nothing counted")
				}
				return nil
			}))
			seen := watch.Stored()
			g.Expect(seen.Lost).To(BeEmpty())
			g.Expect(seen.Values).To(HaveKeyWithValue(c.to.String()+" packets", Reading{0, 1, 1, "packets"}))
			g.Expect(seen.Values).To(HaveKeyWithValue(c.to.String()+" bytes", Reading{0, c.bytes, c.bytes, "bytes"}))
			g.Expect(seen.Values).To(HaveKeyWithValue("packets", Reading{0, 1, 1, "packets"}), "and no other destination")
		})
	}
}

func TestOtherDestinationsAreNotCounted(t *testing.T) {
	g := NewWithT(t)
	e, w := newTestEgress(t)
	watch, err := e.Watch(t.Context(), Subject{Place: "place"})
	g.Expect(err).NotTo(HaveOccurred())
	sender := from(t, w, unix.AF_INET, unix.SOCK_DGRAM, 0)
	must(t, sender.Sendto(t.Context(), []byte("x"), 0, sockaddr(netip.MustParseAddr("198.18.1.2"), 53)))
	c := e.Control(t.Context()) // a later control, sent over the same link and seen, proves that the datagram has passed
	g.Expect(c.Passed).To(BeTrue(), c.Reason)
	seen := watch.Stored()
	g.Expect(seen.Lost).To(BeEmpty())
	g.Expect(seen.Values).To(HaveKeyWithValue("packets", Reading{0, 0, 0, "packets"}))
	g.Expect(seen.Found).To(BeEmpty())
}

func TestWhatIsDroppedIsCounted(t *testing.T) {
	g := NewWithT(t)
	e, _ := newTestEgress(t)
	g.Expect(e.Drop([]netip.Addr{egressV4, egressV6})).To(Succeed())
	c := e.Control(t.Context())
	g.Expect(c.Passed).To(BeTrue(), c.Reason)
}

func TestADeletedTableIsLost(t *testing.T) {
	for name, restore := range map[string]bool{"deleted": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWire(t)
			e, err := NewEgress(w)
			must(t, err)
			must(t, e.For("place", []netip.Addr{egressV4}))
			g.Expect(e.Control(t.Context()).Passed).To(BeTrue())
			watch, err := e.Watch(t.Context(), Subject{Place: "place"})
			g.Expect(err).NotTo(HaveOccurred())

			rules := intruder(t, w)
			must(t, (&ruleset{conn: rules, table: &nftables.Table{Name: egressTable, Family: nftables.TableFamilyNetdev}}).remove())
			if restore {
				again, err := installCounters(rules, w.Peer)
				must(t, err)
				must(t, again.add([]netip.Addr{egressV4}))
			}
			g.Expect(watch.Stored().Lost).To(ContainSubstring(errGone.Error()))
			c := e.Control(t.Context())
			if !restore {
				g.Expect(c.Passed).To(BeFalse())
				g.Expect(c.Reason).To(ContainSubstring(errGone.Error()))
			}
		})
	}
}

// A counter that no rule feeds is the observer not installed: its control must
// say so.
func TestAControlWithoutItsRuleFails(t *testing.T) {
	g := NewWithT(t)
	e, w := newTestEgress(t)
	rules := intruder(t, w)
	rules.FlushChain(e.rules.count)
	must(t, rules.Flush())
	c := e.Control(t.Context())
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(ContainSubstring("counter of 198.18.1.1 shows 0 packets, 0 bytes instead of 1 packets, 53 bytes"))
}

func TestOneTableAWire(t *testing.T) {
	_, w := newTestEgress(t)
	_, err := NewEgress(w)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("file exists")))
}

// intruder is another connection to the far end's nftables.
func intruder(t *testing.T, w *Wire) *nftables.Conn {
	t.Helper()
	world, err := os.Open(w.World)
	must(t, err)
	t.Cleanup(func() { _ = world.Close() })
	conn, err := nftables.New(nftables.WithNetNSFd(int(world.Fd())))
	must(t, err)
	return conn
}
