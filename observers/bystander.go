package observers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stall is how long an answer may take, on a machine at rest, before the
// bystander counts as stalled. Where the bystander itself took long to start,
// before any job of its watch, the machine is slow for another reason than the
// job, and the bound is longer by as much; see [Slowness].
const stall = 2 * time.Second

// glance is how long one sample waits for an answer. What takes longer is looked
// for again by the next, so that no other observer misses its turn meanwhile.
const glance = 20 * time.Millisecond

// Bystander is the observer "bystander": a process of the harness, outside any
// job, that answers each byte with a byte. A job that takes the host's memory
// or processors shows in it.
//
// Values: "alive" 1 or 0 (count; worst is the least), "latency" of an answer in
// ns (worst is the longest; beyond 20 ms as seen by the next look; after [stall],
// or longer on a slow machine, the bystander counts as not alive), "swapped" in bytes (VmSwap of proc_pid_status(5)). All watches of
// one observer share one process; it lives while there is a watch.
type Bystander struct {
	host  Host
	spawn Spawner

	mu      sync.Mutex
	watches int
	one     *echoer
}

// NewBystander watches over h.
func NewBystander(h Host, spawn Spawner) *Bystander { return &Bystander{host: h, spawn: spawn} }

// Name is "bystander".
func (*Bystander) Name() string { return "bystander" }

// echoer is a process with [ActEcho] and our end of its channel.
type echoer struct {
	process  *os.Process
	channel  *os.File
	sent     time.Time     // of the byte that was not answered yet; zero when there is none
	patience time.Duration // how long an answer may take
}

// pulse is one look at an echoer.
type pulse struct {
	alive   int64
	latency time.Duration
	swapped int64
	pending bool   // its answer has not come, and may
	why     string // why it is not alive
	lost    string // why that could not be told
}

func (b *Bystander) start(ctx context.Context) (*echoer, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start bystander: socketpair: %w", err)
	}
	// Ours does not block, so that deadlines work; the child's does.
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return nil, errors.Join(fmt.Errorf("start bystander: %w", err), unix.Close(pair[0]), unix.Close(pair[1]))
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "bystander"), os.NewFile(uintptr(pair[1]), "bystander")
	began := time.Now()
	process, err := b.spawn.Spawn(ctx, Child{Act: ActEcho, Stdio: theirs})
	if err := errors.Join(err, theirs.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start bystander: %w", err), ours.Close())
	}
	e := &echoer{process: process, channel: ours, patience: stretched(stall, slowest)}
	// The first answer includes the child's own start. That is no disturbance
	// but the measure of this machine.
	if first := e.await(ctx, b.host); first.alive == 1 {
		e.patience = stretched(stall, slowness(time.Since(began)))
	}
	return e, nil
}

func (e *echoer) end() error {
	err := e.channel.Close()
	reap(e.process)
	return err
}

// await takes the pulse until it is answered, until the answer takes too long, or
// until ctx ends.
func (e *echoer) await(ctx context.Context, h Host) pulse {
	for {
		p := e.pulse(h)
		if !p.pending {
			return p
		}
		if err := ctx.Err(); err != nil {
			return pulse{latency: p.latency, why: fmt.Sprintf("the bystander, process %d, has not answered: %v", e.process.Pid, err)}
		}
	}
}

// pulse sends a byte, unless one is on its way, and waits a [glance] for its
// echo. When that is not there by then and may still come, the bystander is
// alive, with the latency that the answer has by now.
func (e *echoer) pulse(h Host) (p pulse) {
	var err error
	if e.sent.IsZero() {
		e.sent = time.Now()
		_, err = e.channel.Write([]byte{1}) // the channel holds a byte at least
	}
	if err == nil {
		err = e.channel.SetReadDeadline(time.Now().Add(glance))
	}
	if err == nil {
		_, err = e.channel.Read([]byte{0})
	}
	p.latency = time.Since(e.sent)
	switch {
	case err == nil:
		e.sent = time.Time{}
	case errors.Is(err, os.ErrDeadlineExceeded) && p.latency < e.patience:
		p.pending = true
	default:
		p.why = fmt.Sprintf("the bystander, process %d, does not answer: %v after %v", e.process.Pid, err, p.latency)
		return p
	}
	if p.swapped, err = swapped(h, e.process.Pid); err != nil {
		p.lost = fmt.Sprintf("the bystander answers, and cannot be looked at: %v", err)
	}
	p.alive = 1
	return p
}

// swapped is VmSwap in bytes; 0 where the kernel has no swap and no such line.
func swapped(h Host, pid int) (int64, error) {
	name := h.Proc + "/" + strconv.Itoa(pid) + "/status"
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmSwap:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read %s: VmSwap: %w", name, err)
			}
			return n << 10, nil
		}
	}
	return 0, nil
}

// Control kills a second, throwaway bystander and wants to see it alive before
// and dead after.
func (b *Bystander) Control(ctx context.Context) (c Control) {
	c = Control{
		Observer: b.Name(), Place: "host",
		Effect: "a second bystander was started and killed",
		Want:   "alive before, dead after",
	}
	e, err := b.start(ctx)
	if err != nil {
		return failed(c, err)
	}
	defer func() {
		if err := e.channel.Close(); err != nil {
			c = failed(c, err)
		}
	}()
	before := e.await(ctx, b.host)
	reap(e.process)
	after := e.await(ctx, b.host)
	word := map[int64]string{0: "dead", 1: "alive"}
	c.Seen = word[before.alive] + " before, " + word[after.alive] + " after"
	c.Passed = before.alive == 1 && after.alive == 0 && before.lost == ""
	if !c.Passed {
		c.Reason = "the answers do not tell a live process from a dead one: " + cmp.Or(before.why, before.lost)
	}
	return c
}

// Watch arms the observer; see [Bystander] for the values.
func (b *Bystander) Watch(ctx context.Context, s Subject) (Watch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watches == 0 {
		e, err := b.start(ctx)
		if err != nil {
			return nil, err
		}
		b.one = e
	}
	b.watches++
	first := b.one.await(ctx, b.host)
	w := &bystanderWatch{Bystander: b, o: Observation{Observer: b.Name(), Place: s.Place, Values: map[string]Reading{
		"alive":   {Before: first.alive, Worst: first.alive, Unit: "count"},
		"latency": {Before: int64(first.latency), Worst: int64(first.latency), Unit: "ns"},
		"swapped": {Before: first.swapped, Worst: first.swapped, Unit: "bytes"},
	}}}
	w.take(first)
	return w, nil
}

// look takes the pulse, unless another watch is taking it just now: no watch
// waits behind another.
func (b *Bystander) look() (p pulse, looked bool) {
	if !b.mu.TryLock() {
		return pulse{}, false
	}
	defer b.mu.Unlock()
	return b.one.pulse(b.host), true
}

type bystanderWatch struct {
	*Bystander
	o Observation
}

func (w *bystanderWatch) Sample() {
	if p, looked := w.look(); looked {
		w.take(p)
		w.o.Samples++
	}
}

func (w *bystanderWatch) Ended() { w.Sample() }

func (w *bystanderWatch) take(p pulse) {
	put := func(name string, n, worst int64) {
		r := w.o.Values[name]
		r.Worst, r.After = worst, n
		w.o.Values[name] = r
	}
	put("alive", p.alive, min(w.o.Values["alive"].Worst, p.alive))
	put("latency", int64(p.latency), max(w.o.Values["latency"].Worst, int64(p.latency)))
	put("swapped", p.swapped, max(w.o.Values["swapped"].Worst, p.swapped))
	w.o.Lost = cmp.Or(w.o.Lost, p.lost)
	if p.why != "" && len(w.o.Found) == 0 {
		w.o.Find(p.why)
	}
}

func (w *bystanderWatch) Stored() Observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take(w.one.await(context.Background(), w.host))
	w.o.Samples++
	w.watches--
	if w.watches == 0 {
		if err := w.one.end(); err != nil {
			w.o.Lost = fmt.Sprintf("end the bystander: %v", err)
		}
		w.one = nil
	}
	return w.o
}
