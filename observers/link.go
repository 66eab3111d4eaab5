package observers

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Link is the observer "link": the transmit statistics of a place's one link, so
// everything that leaves, whatever its protocol and destination.
//
// Values of an observation: "tx_packets" and "tx_bytes", counted from the arming
// and without the wire's controls; bytes are those of Ethernet frames. They
// only grow, so Worst is the last look. A place shared by jobs that run side by
// side shares its link: what one sends, the watches of all of them report.
//
// What it does not prove: where the frames went. The observer "egress" counts by
// destination.
type Link struct {
	wire    *Wire
	handle  *netlink.Handle
	control netip.Addr
}

// NewLink opens the near end of the wire. The address is where the control
// datagram goes: one that no other observer counts.
func NewLink(w *Wire, control netip.Addr) (*Link, error) {
	place, err := netns.GetFromPath(w.Place)
	if err != nil {
		return nil, fmt.Errorf("open place %s: %w", w.Name, err)
	}
	handle, err := netlink.NewHandleAt(place)
	if err := errors.Join(err, place.Close()); err != nil {
		return nil, fmt.Errorf("connect to links of %s: %w", w.Name, err)
	}
	return &Link{wire: w, handle: handle, control: control}, nil
}

// Name is "link".
func (l *Link) Name() string { return "link" }

// Close lets go of the place.
func (l *Link) Close() { l.handle.Close() }

// look reads the statistics as they are. The caller holds the wire's controls.
func (l *Link) look() (tally, error) {
	link, err := l.handle.LinkByName(l.wire.Link)
	if err != nil {
		return tally{}, fmt.Errorf("read link %s of %s: %w", l.wire.Link, l.wire.Name, err)
	}
	statistics := link.Attrs().Statistics
	if statistics == nil {
		return tally{}, fmt.Errorf("read link %s of %s: it has no statistics", l.wire.Link, l.wire.Name)
	}
	return tally{int64(statistics.TxPackets), int64(statistics.TxBytes)}, nil
}

// Control sends one datagram over the link: the statistics must grow by exactly
// its frame.
func (l *Link) Control(ctx context.Context) Control {
	l.wire.controls.Lock()
	defer l.wire.controls.Unlock()
	want := tally{1, etherHeader + controlBytes(l.control)}
	c := Control{
		Observer: l.Name(), Place: l.wire.Name,
		Effect: fmt.Sprintf("sent one UDP datagram of %d bytes from %s to %s", len(controlText), l.wire.Name, l.control),
		Want:   want.String() + " more at the link",
	}
	ctx, cancel := context.WithTimeout(ctx, controlWait)
	defer cancel()
	grown, err := l.grow(ctx)
	if err != nil {
		c.Reason = err.Error()
		return c
	}
	c.Seen = grown.String() + " more at the link"
	c.Passed = grown == want
	if !c.Passed {
		c.Reason = fmt.Sprintf("the link shows %s instead of %s; run controls while no job uses the link", grown, want)
	}
	return c
}

// grow sends the control and waits until the statistics move.
func (l *Link) grow(ctx context.Context) (tally, error) {
	before, err := l.look()
	if err != nil {
		return tally{}, err
	}
	if err := l.wire.send(ctx, l.control); err != nil {
		return tally{}, err
	}
	var grown tally
	until(ctx, func() bool {
		var now tally
		now, err = l.look()
		grown = now.minus(before)
		return err != nil || grown.packets > 0
	})
	return grown, err
}

// linkWatch is [Link] armed for one subject.
type linkWatch struct {
	link   *Link
	before tally
	seen   Observation
}

// Watch arms the link's statistics from here on.
func (l *Link) Watch(_ context.Context, s Subject) (Watch, error) {
	w := &linkWatch{link: l, seen: Observation{Observer: l.Name(), Place: s.Place}}
	l.wire.controls.Lock()
	before, err := l.look()
	w.before = before.minus(l.wire.sent)
	l.wire.controls.Unlock()
	if err != nil {
		return nil, fmt.Errorf("watch link of %s: %w", s.Place, err)
	}
	w.look()
	return w, nil
}

// Sample does nothing: statistics only grow, so the last look holds the worst.
func (w *linkWatch) Sample() {}

// Ended reads the statistics while the place still stands.
func (w *linkWatch) Ended() { w.look() }

// Stored reads the statistics a last time.
func (w *linkWatch) Stored() Observation {
	w.look()
	if sent := w.seen.Values["tx_packets"].After; sent > 0 {
		w.seen.Find(fmt.Sprintf("%s left over link %s of %s", tally{sent, w.seen.Values["tx_bytes"].After}, w.link.wire.Link, w.link.wire.Name))
	}
	return w.seen
}

func (w *linkWatch) look() {
	w.link.wire.controls.Lock()
	now, err := w.link.look()
	grown := now.minus(w.link.wire.sent).minus(w.before)
	w.link.wire.controls.Unlock()
	if err == nil && (grown.packets < 0 || grown.bytes < 0) {
		err = fmt.Errorf("read link %s of %s: its statistics went back", w.link.wire.Link, w.link.wire.Name)
	}
	if err != nil {
		if w.seen.Lost == "" {
			w.seen.Lost = err.Error()
		}
		return
	}
	w.seen.Samples++
	w.seen.Values = map[string]Reading{
		"tx_packets": {0, grown.packets, grown.packets, "packets"},
		"tx_bytes":   {0, grown.bytes, grown.bytes, "bytes"},
	}
}
