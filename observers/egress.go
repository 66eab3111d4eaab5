package observers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/nftables"
)

// Egress is the observer "egress": nftables counters of what leaves a place, one
// for each destination address.
//
// Values of an observation: "<address> packets" and "<address> bytes" for each
// destination given to the subject's place by [Egress.For], and "packets" and
// "bytes" for all of them together; bytes are those of IP packets. Readings count
// from the making of the counter and leave out the observer's own controls, so a
// place from which nothing was sent reads 0 throughout. Counters only grow: Worst
// is the last look, and between looks nothing can be missed.
//
// What it does not prove: that nothing was sent to addresses it does not watch,
// or by other protocols than IP. The observer "link" counts those.
type Egress struct {
	wire *Wire

	mu     sync.Mutex
	closed bool
	rules  *ruleset
	seen   map[netip.Addr]*destination
}

// destination is one watched address.
type destination struct {
	place  string
	handle uint64 // of its counting rule
	sent   tally  // what the controls sent
	passed bool   // its own control was seen exactly
}

// NewEgress installs the counters' table on the wire's far end.
func NewEgress(w *Wire) (*Egress, error) {
	world, err := os.Open(w.World)
	if err != nil {
		return nil, fmt.Errorf("open far end of %s: %w", w.Name, err)
	}
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithNetNSFd(int(world.Fd())))
	if err := errors.Join(err, world.Close()); err != nil {
		return nil, fmt.Errorf("connect to nftables of %s: %w", w.Name, err)
	}
	e, err := newEgress(w, conn)
	if err != nil {
		return nil, errors.Join(err, conn.CloseLasting())
	}
	return e, nil
}

func newEgress(w *Wire, conn *nftables.Conn) (*Egress, error) {
	rules, err := installCounters(conn, w.Peer)
	if err != nil {
		return nil, err
	}
	return &Egress{wire: w, rules: rules, seen: map[netip.Addr]*destination{}}, nil
}

// Name is "egress".
func (e *Egress) Name() string { return "egress" }

// For gives destinations to a place and starts to count them. An address that
// already belongs to a place is an error: what is sent there could not be told
// apart. IPv4-mapped IPv6 addresses are the IPv4 ones, as they are on the wire.
func (e *Egress) For(place string, dests []netip.Addr) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var fresh []netip.Addr
	for _, address := range dests {
		address = address.Unmap()
		if !address.IsValid() {
			return fmt.Errorf("watch destinations of %s: no address", place)
		}
		if other, taken := e.seen[address]; taken {
			return fmt.Errorf("watch destinations of %s: %s belongs to %s", place, address, other.place)
		}
		if slices.Contains(fresh, address) {
			return fmt.Errorf("watch destinations of %s: %s twice", place, address)
		}
		fresh = append(fresh, address)
	}
	if err := e.rules.add(fresh); err != nil {
		return fmt.Errorf("watch destinations of %s: %w", place, err)
	}
	handles, err := e.rules.rules()
	if err != nil {
		return fmt.Errorf("watch destinations of %s: %w", place, err)
	}
	for _, address := range fresh {
		e.seen[address] = &destination{place: place, handle: handles[counterName(address)]}
	}
	return nil
}

// Drop makes the far end drop, after counting, what is sent to the addresses:
// they answer nothing, not even that they do not exist.
func (e *Egress) Drop(dests []netip.Addr) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rules.discard(dests)
}

// Close removes the table. A second call does nothing.
func (e *Egress) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	return errors.Join(e.rules.remove(), e.rules.close())
}

// look reads the counters of the given destinations, without the controls. The
// caller holds e.mu.
func (e *Egress) look(dests []netip.Addr) (map[netip.Addr]tally, error) {
	raw, err := e.rules.read()
	if err != nil {
		return nil, err
	}
	tallies := make(map[netip.Addr]tally, len(dests))
	for _, address := range dests {
		counter, there := raw[counterName(address)]
		counter = counter.minus(e.seen[address].sent)
		if !there || counter.packets < 0 || counter.bytes < 0 {
			return nil, fmt.Errorf("counter of %s: %w", address, errGone)
		}
		tallies[address] = counter
	}
	return tallies, nil
}

// of lists the destinations of a place, or of all places, in order.
func (e *Egress) of(place string, all bool) []netip.Addr {
	return slices.DeleteFunc(slices.SortedFunc(maps.Keys(e.seen), netip.Addr.Compare), func(a netip.Addr) bool {
		return !all && e.seen[a].place != place
	})
}

// controlWait bounds the wait for datagrams that were sent but not yet counted:
// the kernel may hand a frame over to its softirq thread, which on a loaded
// machine waits for its turn. The count is awaited, so that only a counter that
// does not count takes so long.
const controlWait = 10 * time.Second

// Control sends one datagram from the place to each watched destination: each
// counter must show exactly it. It covers the destinations given so far.
func (e *Egress) Control(ctx context.Context) Control {
	e.wire.controls.Lock()
	defer e.wire.controls.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	dests := e.of("", true)
	c := Control{
		Observer: e.Name(), Place: e.wire.Name,
		Effect: fmt.Sprintf("sent one UDP datagram of %d bytes from %s to each of %d destinations", len(controlText), e.wire.Name, len(dests)),
		Want:   fmt.Sprintf("at each destination's counter 1 packet, %d bytes over IPv4 or %d over IPv6, and nothing else", controlBytes(netip.IPv4Unspecified()), controlBytes(netip.IPv6Unspecified())),
	}
	if len(dests) == 0 {
		c.Reason = "no destinations are watched; give some by For"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, controlWait)
	defer cancel()
	seen, err := e.control(ctx, dests)
	var words []string
	for _, address := range dests {
		if got, looked := seen[address]; looked {
			words = append(words, fmt.Sprintf("%s: %s", address, got))
		}
	}
	c.Seen = strings.Join(words, "; ")
	c.Passed = err == nil
	if err != nil {
		c.Reason = err.Error() + "; the counters need nftables' netdev family (CONFIG_NF_TABLES_NETDEV, CONFIG_NETFILTER_INGRESS)"
	}
	return c
}

// control sends, waits until every counter moved, and compares.
func (e *Egress) control(ctx context.Context, dests []netip.Addr) (map[netip.Addr]tally, error) {
	before, err := e.look(dests)
	if err != nil {
		return nil, err
	}
	if err := e.wire.send(ctx, dests...); err != nil {
		return nil, err
	}
	var now map[netip.Addr]tally
	until(ctx, func() bool {
		if now, err = e.look(dests); err != nil {
			return true
		}
		arrived := true
		for _, address := range dests {
			now[address] = now[address].minus(before[address])
			arrived = arrived && now[address].packets > 0
		}
		return arrived
	})
	if err != nil {
		return nil, err
	}
	return now, e.settle(now)
}

// settle compares what a control showed with what it sent, and takes it out of
// later readings.
func (e *Egress) settle(seen map[netip.Addr]tally) error {
	var errs []error
	for _, address := range slices.SortedFunc(maps.Keys(seen), netip.Addr.Compare) {
		want := tally{1, controlBytes(address)}
		d := e.seen[address]
		if d.passed = seen[address] == want; !d.passed {
			errs = append(errs, fmt.Errorf("counter of %s shows %s instead of %s", address, seen[address], want))
		}
		if seen[address].packets > 0 {
			d.sent = d.sent.add(want)
		}
	}
	return errors.Join(errs...)
}
