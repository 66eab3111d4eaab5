package observers

import (
	"context"
	"fmt"
	"net/netip"
)

// egressWatch is [Egress] armed for one subject.
type egressWatch struct {
	egress *Egress
	dests  []netip.Addr
	before map[netip.Addr]tally
	seen   Observation
}

// Watch arms the counters of the subject's place. It fails when no destination
// is watched there, or when one has not passed its own control.
func (e *Egress) Watch(_ context.Context, s Subject) (Watch, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := &egressWatch{egress: e, dests: e.of(s.Place, false), seen: Observation{Observer: e.Name(), Place: s.Place}}
	if len(w.dests) == 0 {
		return nil, fmt.Errorf("watch egress of %s: no destinations are watched there", s.Place)
	}
	for _, address := range w.dests {
		if !e.seen[address].passed {
			return nil, fmt.Errorf("watch egress of %s: the counter of %s has not passed its control", s.Place, address)
		}
	}
	before, err := e.look(w.dests)
	if err != nil {
		return nil, fmt.Errorf("watch egress of %s: %w", s.Place, err)
	}
	w.before = before
	w.seen.Samples++
	w.report(before)
	return w, nil
}

// Sample does nothing: counters only grow, so the last look holds the worst.
func (w *egressWatch) Sample() {}

// Ended reads the counters while the place still stands.
func (w *egressWatch) Ended() { w.look() }

// Stored reads the counters a last time and makes sure that they are the ones
// that were armed, each still fed by its own rule.
func (w *egressWatch) Stored() Observation {
	w.look()
	w.egress.mu.Lock()
	defer w.egress.mu.Unlock()
	handles, err := w.egress.rules.rules()
	if err != nil {
		w.lose(err)
	}
	for _, address := range w.dests {
		if handle, there := handles[counterName(address)]; err == nil && (!there || handle != w.egress.seen[address].handle) {
			w.lose(fmt.Errorf("rule of %s: %w", address, errGone))
		}
	}
	for _, address := range w.dests {
		if packets := w.seen.Values[address.String()+" packets"]; packets.After > packets.Before {
			bytes := w.seen.Values[address.String()+" bytes"]
			w.seen.Find(fmt.Sprintf("%s left %s for %s", tally{packets.After - packets.Before, bytes.After - bytes.Before}, w.seen.Place, address))
		}
	}
	return w.seen
}

func (w *egressWatch) look() {
	w.egress.mu.Lock()
	defer w.egress.mu.Unlock()
	now, err := w.egress.look(w.dests)
	if err != nil {
		w.lose(err)
		return
	}
	w.seen.Samples++
	w.report(now)
}

// lose keeps the first reason: later ones follow from it.
func (w *egressWatch) lose(err error) {
	if w.seen.Lost == "" {
		w.seen.Lost = err.Error()
	}
}

// report turns the counters as they stand into readings.
func (w *egressWatch) report(now map[netip.Addr]tally) {
	w.seen.Values = make(map[string]Reading, 2*len(w.dests)+2)
	put := func(prefix string, before, after tally) {
		w.seen.Values[prefix+"packets"] = Reading{before.packets, after.packets, after.packets, "packets"}
		w.seen.Values[prefix+"bytes"] = Reading{before.bytes, after.bytes, after.bytes, "bytes"}
	}
	var before, after tally
	for _, address := range w.dests {
		put(address.String()+" ", w.before[address], now[address])
		before, after = before.add(w.before[address]), after.add(now[address])
	}
	put("", before, after)
}
