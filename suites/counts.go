package suites

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox"
)

// counts holds what the harness itself counted in what the runner handed out.
type counts struct {
	mu   sync.Mutex
	seen map[string]handed // by place
}

// handed is what one job's collector got.
type handed struct{ output, artifacts int64 }

func newCounts() *counts { return &counts{seen: map[string]handed{}} }

// took counts a result. It is the same code that the control goes through.
func (c *counts) took(place string, r sandbox.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[place] = handed{int64(len(r.Stdout) + len(r.Stderr)), int64(len(r.Artifacts))}
}

func (c *counts) of(place string) (handed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.seen[place]
	return h, ok
}

// outputObserver is the observer "output": bytes of standard output and
// standard error together ("kept"), and artifacts, as the collector got them.
type outputObserver struct{ counts *counts }

func (outputObserver) Name() string { return "output" }

// Control hands a result of known size to the same counting.
func (o outputObserver) Control(context.Context) observers.Control {
	c := observers.Control{Observer: "output", Effect: "a result of 5 and 7 bytes is counted", Want: "12"}
	o.counts.took("control", sandbox.Result{Stdout: make([]byte, 5), Stderr: make([]byte, 7)})
	h, _ := o.counts.of("control")
	c.Seen, c.Passed = text(h.output), h.output == 12 && h.artifacts == 0
	if !c.Passed {
		c.Reason = "the count is wrong"
	}
	return c
}

func (o outputObserver) Watch(_ context.Context, s observers.Subject) (observers.Watch, error) {
	return outputWatch{o.counts, s.Place}, nil
}

type outputWatch struct {
	counts *counts
	place  string
}

func (outputWatch) Sample() {}
func (outputWatch) Ended()  {}

func (w outputWatch) Stored() observers.Observation {
	out := observers.Observation{Observer: "output", Place: w.place}
	h, ok := w.counts.of(w.place)
	if !ok {
		out.Lost = "no result was handed out"
		return out
	}
	out.Samples = 1
	out.Values = map[string]observers.Reading{
		"kept":      {Worst: h.output, After: h.output, Unit: "bytes"},
		"artifacts": {Worst: h.artifacts, After: h.artifacts, Unit: "count"},
	}
	return out
}

// clockObserver is the observer "clock": how long the job lived ("wall", ns),
// from the last moment before its runtime was started to the moment when its
// last process was gone, on the monotonic clock, which nobody can set.
type clockObserver struct{}

func (clockObserver) Name() string { return "clock" }

// Control measures a wait of known length.
func (clockObserver) Control(ctx context.Context) observers.Control {
	const wait = 20 * time.Millisecond
	c := observers.Control{Observer: "clock", Effect: fmt.Sprintf("a wait of %s is measured", wait), Want: "at least that, and under 2s"}
	w := &clockWatch{began: time.Now()}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		c.Reason = ctx.Err().Error()
		return c
	}
	w.Ended()
	c.Seen, c.Passed = w.lived.String(), w.lived >= wait && w.lived < 2*time.Second
	if !c.Passed {
		c.Reason = "the clock is wrong, or the machine is very busy"
	}
	return c
}

func (clockObserver) Watch(_ context.Context, s observers.Subject) (observers.Watch, error) {
	return &clockWatch{place: s.Place, began: time.Now()}, nil
}

type clockWatch struct {
	place string
	began time.Time
	lived time.Duration
}

func (*clockWatch) Sample()  {}
func (w *clockWatch) Ended() { w.lived = time.Since(w.began) }

func (w *clockWatch) Stored() observers.Observation {
	n := int64(w.lived)
	return observers.Observation{Observer: "clock", Place: w.place, Samples: 1, Values: map[string]observers.Reading{
		"wall": {Worst: n, After: n, Unit: "ns"},
	}}
}
