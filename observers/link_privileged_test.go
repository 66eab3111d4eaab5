//go:build privileged

package observers

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/nftables"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

var linkControl = netip.MustParseAddr("198.18.1.250")

func newTestLink(t *testing.T) (*Link, *Wire) {
	t.Helper()
	w := newWire(t)
	l, err := NewLink(w, linkControl)
	must(t, err)
	t.Cleanup(l.Close)
	return l, w
}

func linkIndex(t *testing.T, w *Wire) int {
	t.Helper()
	place, err := netns.GetFromPath(w.Place)
	must(t, err)
	links, err := netlink.NewHandleAt(place)
	must(t, errors.Join(err, place.Close()))
	defer links.Close()
	link, err := links.LinkByName(w.Link)
	must(t, err)
	return link.Attrs().Index
}

func TestTheLinkShowsItsControlAndTheRest(t *testing.T) {
	g := NewWithT(t)
	l, w := newTestLink(t)
	c := l.Control(t.Context())
	g.Expect(c.Passed).To(BeTrue(), c.Reason)
	g.Expect(c.Seen).To(Equal("1 packets, 67 bytes more at the link"))

	watch, err := l.Watch(t.Context(), Subject{Place: "place"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Control(t.Context()).Passed).To(BeTrue())
	watch.Sample()
	watch.Ended()
	must(t, from(t, w, unix.AF_PACKET, unix.SOCK_RAW, 0).Sendto(t.Context(), frame([]byte{0x88, 0xb5}, []byte("not an IP packet")), 0, &unix.SockaddrLinklayer{Ifindex: linkIndex(t, w)}))
	must(t, eventually(func() error {
		if watch.(*linkWatch).look(); watch.(*linkWatch).seen.Values["tx_packets"].After == 0 {
			return errors.New("nothing counted")
		}
		return nil
	}))
	seen := watch.Stored()
	g.Expect(seen.Lost).To(BeEmpty())
	g.Expect(seen.Values).To(Equal(map[string]Reading{"tx_packets": {0, 1, 1, "packets"}, "tx_bytes": {0, 30, 30, "bytes"}}))
	g.Expect(seen.Found).To(Equal([]string{"1 packets, 30 bytes left over link up0 of place"}))
}

func TestASilentLinkReadsZero(t *testing.T) {
	g := NewWithT(t)
	l, _ := newTestLink(t)
	watch, err := l.Watch(t.Context(), Subject{Place: "place"})
	g.Expect(err).NotTo(HaveOccurred())
	watch.Ended()
	seen := watch.Stored()
	g.Expect(seen.Found).To(BeEmpty())
	g.Expect(seen.Samples).To(Equal(3))
	g.Expect(seen.Values).To(Equal(map[string]Reading{"tx_packets": {0, 0, 0, "packets"}, "tx_bytes": {0, 0, 0, "bytes"}}))
}

func TestALinkThatIsGoneIsLost(t *testing.T) {
	g := NewWithT(t)
	l, w := newTestLink(t)
	watch, err := l.Watch(t.Context(), Subject{Place: "place"})
	g.Expect(err).NotTo(HaveOccurred())
	must(t, l.handle.LinkDel(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: w.Link, Index: linkIndex(t, w)}}))
	g.Expect(watch.Stored().Lost).To(ContainSubstring("read link up0 of place"))
	g.Expect(l.Control(t.Context()).Passed).To(BeFalse())
}

// What is dropped before the link never shows there: the control waits for it
// in vain.
func TestALinkThatShowsNothingFailsItsControl(t *testing.T) {
	g := NewWithT(t)
	l, w := newTestLink(t)
	must(t, space{path: w.Place}.enter(func(_ *netlink.Handle, conn *nftables.Conn) error {
		drop := nftables.ChainPolicyDrop
		conn.AddChain(&nftables.Chain{
			Name: "all", Table: conn.AddTable(&nftables.Table{Name: "drop", Family: nftables.TableFamilyNetdev}), Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookEgress, Priority: nftables.ChainPriorityFilter, Device: w.Link, Policy: &drop,
		})
		return conn.Flush()
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := l.Control(ctx)
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(HavePrefix("the link shows 0 packets, 0 bytes instead of 1 packets, 67 bytes"))
}
