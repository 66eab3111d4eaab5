package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/observers"
)

// listingObserver is the observer "listing": the runtime's own list of the
// guest's processes. Values: "processes" (count, the largest sample). Threads
// are not in it; the payload counts those.
//
// It asks the runtime, so it is the weakest witness, and never the only one.
type listingObserver struct {
	list      lister
	root      string // of the neighbour's container, for the control
	container string
}

// lister asks the runtime for a container's processes.
type lister func(ctx context.Context, root, container string) ([]int, error)

// processes asks from the network namespace in which the runtime was launched:
// older ones talk to their sandbox over an abstract socket, which is heard only
// there (unix(7)).
func (s *Scene) processes(ctx context.Context, root, container string) (pids []int, err error) {
	inside := s.world.InPlace(func() error {
		pids, err = s.cfg.Processes(ctx, root, container)
		return nil
	})
	return pids, errors.Join(inside, err)
}

func newListing(s *Scene) listingObserver {
	return listingObserver{
		list: s.processes, container: string(s.neighbour.Job),
		root: filepath.Join(s.cfg.StateDir, "jobs", string(s.neighbour.Job), "root"),
	}
}

func (listingObserver) Name() string { return "listing" }

// Control lists the neighbour, which runs one process and has to be running
// when the control is made.
func (o listingObserver) Control(ctx context.Context) observers.Control {
	c := observers.Control{Observer: "listing", Effect: "the running neighbour is listed", Want: "its one process or more"}
	pids, err := o.list(ctx, o.root, o.container)
	c.Seen, c.Passed = fmt.Sprintf("processes %v", pids), err == nil && len(pids) > 0
	if err != nil {
		c.Reason = err.Error()
	} else if !c.Passed {
		c.Reason = "the runtime lists no process of a running job"
	}
	return c
}

func (o listingObserver) Watch(_ context.Context, s observers.Subject) (observers.Watch, error) {
	return &listingWatch{list: o.list, container: s.Container, obs: observers.Observation{
		Observer: "listing", Place: s.Place, Values: map[string]observers.Reading{},
	}}, nil
}

// listEvery is how often the runtime is asked: each time starts its command.
const listEvery = 250 * time.Millisecond

type listingWatch struct {
	list      lister
	root      string
	container string
	next      time.Time
	last      error
	obs       observers.Observation
}

// Sample asks the runtime. Before the container runs and after it has ended
// there is nothing to list, and that is no loss of the window.
func (w *listingWatch) Sample() {
	if time.Now().Before(w.next) {
		return
	}
	if _, err := os.Stat(filepath.Join(w.root, "init.pid")); err != nil {
		return
	}
	pids, err := w.list(context.Background(), w.root, w.container)
	w.next = time.Now().Add(listEvery)
	if err != nil {
		w.last = err
		return
	}
	w.obs.Samples++
	n := int64(len(pids))
	r := w.obs.Values["processes"]
	w.obs.Values["processes"] = observers.Reading{Worst: max(n, r.Worst), After: n, Unit: "processes"}
}

func (*listingWatch) Ended() {}

func (w *listingWatch) Stored() observers.Observation {
	if w.obs.Samples == 0 {
		w.obs.Lost = fmt.Sprintf("the runtime never listed the job's processes: %v", w.last)
	}
	return w.obs
}
