package suites

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// heavy is the processor time from which on a cell takes a whole processor.
const heavy = time.Second

// sit runs the cells of the asked trials side by side and yields the evidence
// of each as it comes. The neighbour sits from the first to the last cell that
// needs one beside it; cells that wait more than they work start at once.
func (r *run) sit(ctx context.Context) iter.Seq[*cellEvidence] {
	return func(yield func(*cellEvidence) bool) {
		out := make(chan *cellEvidence)
		go func() {
			defer close(out)
			r.sitAll(ctx, func(ev *cellEvidence) { out <- ev })
		}()
		for ev := range out {
			yield(ev) // the caller takes all: every cell has to end
		}
	}
}

func (r *run) sitAll(ctx context.Context, done func(*cellEvidence)) {
	needs, rest := r.parted()
	var wg sync.WaitGroup
	if len(needs) > 0 {
		wg.Go(func() { r.sitBeside(ctx, needs, done) })
	}
	all := semaphore.NewWeighted(int64(2 * runtime.NumCPU()))
	processors := semaphore.NewWeighted(int64(runtime.NumCPU()))
	// The link counts for all jobs in the run's network namespace: those that it
	// is watched for come one after another, so that it counts for one of them.
	var link sync.Mutex
	for _, c := range rest {
		if c.waits() {
			wg.Go(func() { done(r.sitting(c).run(ctx)) })
			continue
		}
		gate := all
		if c.Cost >= heavy {
			gate = processors
		}
		wg.Go(func() {
			if c.wants("link") {
				link.Lock()
				defer link.Unlock()
			}
			// Acquired without ctx: an interrupted cell records that itself.
			_ = gate.Acquire(context.WithoutCancel(ctx), 1)
			defer gate.Release(1)
			done(r.undisturbed(ctx, c))
		})
	}
	wg.Wait()
}

// repeats is how often a cell is sat again, at most, because others wrote to the
// host's disks meanwhile.
const repeats = 2

// undisturbed is a cell's evidence, from another sitting where the first could not
// show that no disk lost space to the job only because others took some. What the
// job itself takes in a way that nobody thought of, it takes each time.
func (r *run) undisturbed(ctx context.Context, c *Cell) *cellEvidence {
	ev := r.sitting(c).run(ctx)
	for n := 1; n <= repeats && ctx.Err() == nil; n++ {
		taken, disturbed := r.disturbed(ev)
		if !disturbed {
			break
		}
		again := r.sitting(c)
		again.again = n
		ev = again.run(ctx)
		if o, ok := ev.observations["space"]; ok {
			o.Found = append(o.Found, fmt.Sprintf("the job was made again, the %d. time: others took %d bytes of a disk while it ran before", n, taken))
			ev.observations["space"] = o
		}
	}
	return ev
}

// disturbed tells whether all that a cell lacks is that free space fell further
// than the grant, of which no file of the job explains anything; and by how much
// it fell.
func (r *run) disturbed(ev *cellEvidence) (taken int64, is bool) {
	o, ok := ev.observations["space"]
	if !ok || ev.trouble != "" || o.Lost != "" {
		return 0, false
	}
	for _, t := range r.of(ev.place) {
		for _, w := range t.Under(r.scene.cfg).Wants {
			reading, ok := o.Values[w.Value]
			if w.Observer != "space" || !ok || w.Met(reading) {
				continue
			}
			if w.Value != "drop" {
				return 0, false
			}
			taken, is = reading.Worst, true
		}
	}
	return taken, is
}

// waits tells whether the cell's job sleeps until a cap ends it.
func (c *Cell) waits() bool { return c.Name == "wallclock" }

// parted returns the cells that need the neighbour, and the others with the
// longest first.
func (r *run) parted() (needs, rest []*Cell) {
	for _, c := range cells {
		if c.Witness || len(r.of(c.Name)) == 0 {
			continue
		}
		if c.Beside != "" || r.eyes.all["listing"] != nil && c.wants("listing") {
			needs = append(needs, c)
		} else {
			rest = append(rest, c)
		}
	}
	slices.SortStableFunc(rest, func(a, b *Cell) int { return cmp.Compare(b.Cost, a.Cost) })
	return needs, rest
}

// wants tells whether a trial of the cell wants something of the observer.
func (c *Cell) wants(observer string) bool {
	return slices.ContainsFunc(c.trials, func(t *Trial) bool {
		return slices.ContainsFunc(t.Wants, func(w want) bool { return w.Observer == observer })
	})
}

// sitBeside lets the neighbour run while the cells do that need it, with the
// controls that need it first.
func (r *run) sitBeside(ctx context.Context, needs []*Cell, done func(*cellEvidence)) {
	nctx, end := context.WithCancel(ctx)
	defer end()
	n := r.sitting(neighbourCell)
	gone := make(chan *cellEvidence, 1)
	go func() { gone <- n.run(nctx) }()
	trouble := r.awaitNeighbour(ctx, n)
	if trouble == "" {
		r.controlBeside(ctx)
	}
	if trouble != "" { // its own end says more
		end()
		trouble = strings.TrimSuffix(trouble+": "+strings.TrimPrefix((<-gone).trouble, interruptedFirst), ": ")
	}
	var wg sync.WaitGroup
	for _, c := range needs {
		wg.Go(func() {
			if trouble != "" {
				done(&cellEvidence{place: c.Name, started: time.Now(), trouble: trouble})
				return
			}
			done(r.sitting(c).run(ctx))
		})
	}
	wg.Wait()
	if trouble == "" {
		end()
		<-gone
	}
}

// awaitNeighbour returns why the neighbour does not run; empty when it does.
func (r *run) awaitNeighbour(ctx context.Context, n *sitting) string {
	ctx, cancel := context.WithTimeout(ctx, r.scene.within(reachWithin))
	defer cancel()
	ended := make(chan struct{})
	go func() {
		<-n.running
		_, _ = r.scene.runner.Wait(ctx, r.scene.neighbour.Job)
		close(ended)
	}()
	select {
	case <-n.running:
	case <-ctx.Done():
		return "the neighbour did not start"
	}
	if err := awaitClaim(ctx, n.traces.Scratch, r.scene.Nonce, ended); err != nil {
		return "the neighbour: " + err.Error()
	}
	return ""
}

// controlBeside makes the controls that need a running sandbox: the runtime's
// own listing, and a throwaway sandbox that is granted the neighbour's folder.
func (r *run) controlBeside(ctx context.Context) {
	if o := r.eyes.all["listing"]; o != nil {
		r.eyes.add("listing", o.Control(ctx))
	}
	if r.eyes.all["mounts"] != nil {
		r.eyes.add("mounts", r.grantedControl(ctx))
	}
}

func (r *run) sitting(c *Cell) *sitting { return newSitting(c, r.scene, r.eyes, r.of(c.Name)) }
