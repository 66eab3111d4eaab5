package observers

import (
	"errors"
	"fmt"
	"io/fs"

	"tenwalls.dev/harness/internal/cgroup"
)

// gauge is one number that the kernel accounts to a job's cgroup; its worst is
// its greatest.
type gauge struct {
	name, unit string
	read       func(*cgroup.Group) (int64, error)
	// peak, where the kernel keeps it, raises Worst at the end to what no
	// sample may have met. Nil where there is none.
	peak func(*cgroup.Group) (int64, error)
	ends bool // read before and after only: it costs more than a sample may
}

// gauges watches some numbers of one cgroup.
type gauges struct {
	list  []gauge
	group *cgroup.Group
	o     Observation
	ended bool
}

func watchGauges(h Host, observer string, s Subject, list []gauge) (Watch, error) {
	tree, err := cgroup.Detect(h.Cgroup)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", observer, err)
	}
	group, err := tree.Open(s.Cgroup)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", observer, err)
	}
	w := &gauges{list: list, group: group, o: Observation{Observer: observer, Place: s.Place, Values: map[string]Reading{}}}
	for _, g := range list {
		n, err := g.read(group)
		switch {
		case errors.Is(err, ErrNotAccounted):
			continue // the value stays out of the observation
		case errors.Is(err, fs.ErrNotExist):
			n = 0 // the group is made with the job: its accounts begin at 0
		case err != nil:
			return nil, fmt.Errorf("watch %s: %w", observer, err)
		}
		w.o.Values[g.name] = Reading{Before: n, Worst: n, After: n, Unit: g.unit}
	}
	return w, nil
}

func (w *gauges) Sample() {
	for _, g := range w.list {
		if g.ends {
			continue
		}
		n, err := g.read(w.group)
		switch {
		case errors.Is(err, ErrNotAccounted):
			delete(w.o.Values, g.name)
		case err == nil:
			w.raise(g.name, n)
		case !errors.Is(err, fs.ErrNotExist): // not made yet
			w.lost(err)
		}
	}
	w.o.Samples++
}

func (w *gauges) raise(name string, n int64) {
	if r, ok := w.o.Values[name]; ok {
		r.Worst, r.After = max(r.Worst, n), n
		w.o.Values[name] = r
	}
}

func (w *gauges) lost(err error) {
	if w.o.Lost == "" {
		w.o.Lost = err.Error()
	}
}

// Ended demands every number: what is missing now was not accounted to the end.
func (w *gauges) Ended() {
	w.ended = true
	for _, g := range w.list {
		if g.peak != nil {
			if n, err := g.peak(w.group); err == nil {
				w.raise(g.name, n)
			} else if !errors.Is(err, ErrNotAccounted) {
				w.lost(fmt.Errorf("final accounting: %w", err))
			}
		}
		n, err := g.read(w.group)
		switch {
		case errors.Is(err, ErrNotAccounted):
			delete(w.o.Values, g.name)
		case err != nil:
			w.lost(fmt.Errorf("final accounting: %w", err))
		default:
			w.raise(g.name, n)
		}
	}
	w.o.Samples++
}

func (w *gauges) Stored() Observation {
	if !w.ended {
		w.lost(fmt.Errorf("the final accounting of cgroup %s was never taken", w.group.Path()))
	}
	return w.o
}
