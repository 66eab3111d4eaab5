package suites

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Bounds of sampling: an observer is asked again when forty times what its
// last look cost has passed, so that looking takes at most a fortieth of one
// processor for each, and no more often or seldom than these.
const (
	sampleSoonest = 10 * time.Millisecond
	sampleLatest  = 40 * time.Millisecond
	sampleShare   = 40
)

// watching is every armed observer of one cell.
type watching struct {
	watches map[string]observers.Watch
	lost    map[string]string // why an observer could not be armed

	stop chan struct{}
	done sync.WaitGroup
	once sync.Once
}

// arm arms the named observers for the job. One that cannot see is recorded as
// lost: the judge makes it blind.
func (e *eyes) arm(ctx context.Context, names []string, place string, t runsc.Traces) *watching {
	w := &watching{watches: map[string]observers.Watch{}, lost: map[string]string{}, stop: make(chan struct{})}
	subject := observers.Subject{
		Place: place, Cgroup: t.Cgroup, Container: t.Container, Scratch: t.Scratch, Inputs: t.Inputs, Grants: t.Grants,
		Order: observers.Order{Flags: t.Flags, Bundle: t.Bundle, Config: t.Config, State: t.Root},
	}
	for _, n := range names {
		o, ok := e.all[n]
		if !ok {
			continue
		}
		watch, err := o.Watch(ctx, subject)
		if err != nil {
			w.lost[n] = err.Error()
			continue
		}
		if watch == nil {
			continue
		}
		if l, ok := watch.(*listingWatch); ok {
			l.root = t.Root
		}
		w.watches[n] = watch
	}
	return w
}

// sample looks until the job ends.
func (w *watching) sample() {
	w.done.Go(func() {
		due := map[string]time.Time{}
		names := slices.Sorted(maps.Keys(w.watches))
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-timer.C:
			}
			next := time.Now().Add(sampleLatest)
			for _, n := range names {
				began := time.Now()
				if began.Before(due[n]) {
					next = earlier(next, due[n])
					continue
				}
				w.watches[n].Sample()
				cost := time.Since(began)
				due[n] = time.Now().Add(min(max(sampleShare*cost, sampleSoonest), sampleLatest))
				next = earlier(next, due[n])
			}
			timer.Reset(time.Until(next))
		}
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// ended stops the looking and takes the last accounting.
func (w *watching) ended() {
	w.once.Do(func() {
		close(w.stop)
		w.done.Wait()
		for _, watch := range w.watches {
			watch.Ended()
		}
	})
}

// stored takes the observations, each once.
func (w *watching) stored(place string) map[string]observers.Observation {
	w.ended()
	out := map[string]observers.Observation{}
	for n, why := range w.lost {
		out[n] = observers.Observation{Observer: n, Place: place, Lost: why}
	}
	for n, watch := range w.watches {
		out[n] = watch.Stored()
	}
	return out
}
