package runsc

import (
	"context"
	"runtime"
	"sync"
	"time"

	"tenwalls.dev/harness/internal/cgroup"
)

// ending is the first reason for which a job has to end; later ones are told
// nothing. The zero value is ready.
type ending struct {
	once   sync.Once
	reason Reason
	done   chan struct{}
}

func newEnding() *ending { return &ending{done: make(chan struct{})} }

// because ends the job for that reason, unless it has one already.
func (e *ending) because(r Reason) {
	e.once.Do(func() {
		e.reason = r
		close(e.done)
	})
}

// watchCaps ends the job when a cap of the host's own is reached: processor
// time over the whole job, as the job's cgroup accounts it (so that neither
// threads nor a relay of forks outruns it), the wall clock, or an OOM kill in
// the job's memory cgroup that the runtime survived. It returns when ctx is
// done.
func watchCaps(ctx context.Context, w Walls, g *cgroup.Group, e *ending) {
	var wall <-chan time.Time
	if w.Wall > 0 {
		t := time.NewTimer(w.Wall)
		defer t.Stop()
		wall = t.C
	}
	ask := time.NewTimer(minAsk)
	defer ask.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wall:
			e.because(ReasonWall)
			return
		case <-ask.C:
			next := maxAsk
			if used, err := g.ProcessorTime(); err == nil && w.CPU > 0 {
				if used >= w.CPU {
					e.because(ReasonCPU)
					return
				}
				// Every processor spinning, the cap is reached no sooner.
				next = (w.CPU - used) / time.Duration(runtime.NumCPU())
			}
			if n, err := g.OOMKills(); err == nil && n > 0 {
				e.because(ReasonMemory)
				return
			}
			ask.Reset(min(max(next, minAsk), maxAsk))
		}
	}
}
