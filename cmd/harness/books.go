package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/watch"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
	"tenwalls.dev/harness/reports/metrics"
	"tenwalls.dev/harness/sandbox/runsc"
)

// books are the daemon's history and metrics: the ledger in the state folder of
// the runner configuration, and what it comes to for a scrape.
//
// Each run notes itself in that ledger, as every harness run does, with the
// reason that the daemon has. So the daemon notes only a run that came to no line
// of its own: a child that could not be started, or ended before it could note
// anything. A qualified run without a line is an error: what the history does not
// hold does not qualify.
type books struct {
	metrics *metrics.Metrics
	daemon  *metrics.Daemon

	history  *history.History // of the run that goes on, or of the last
	follower *history.Follower

	mu       sync.Mutex // over what a scrape reads
	state    metrics.State
	stateDir string
	proof    os.FileInfo // of what was read of the proof last
}

// newBooks opens the books with what earlier daemons left.
func newBooks(runner, version string) *books {
	m := metrics.New(version)
	b := &books{metrics: m, daemon: metrics.NewDaemon(m)}
	if err := b.open(runner); err != nil { // the daemon says so at its first look, and asks again at each run
		slog.Warn("the history of runs is not known yet: " + reports.Harmless(err.Error()))
		return b
	}
	b.told()
	return b
}

// open reads the ledger that belongs to a runner configuration; of one that was
// read before only what is new.
func (b *books) open(runner string) error {
	cfg, err := runsc.LoadConfig(runner)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.stateDir = cfg.StateDir
	b.mu.Unlock()
	if h := history.In(cfg.StateDir); b.history == nil || b.history.Path() != h.Path() {
		b.history, b.follower = h, h.Follow()
	}
	return b.update()
}

func (b *books) update() error {
	damage, err := b.follower.Update()
	for _, d := range damage {
		slog.Warn("history: " + reports.Harmless(d))
	}
	return err
}

// told sets the metrics after a restart: the last run that ended, with its report
// where that is still there.
func (b *books) told() {
	s := metrics.State{Runs: b.follower.Tally()}
	if last, ok := b.follower.Last(); ok {
		s.Expires = last.Expires
		if r, err := b.history.Report(last); err == nil {
			s.Report = r
			s.Drift, _ = b.follower.Drift(r) // not compared is not told
		}
	}
	b.set(s)
}

// Begin implements [watch.Ledger].
func (b *books) Begin(r watch.Request) error {
	if err := b.open(r.Runner); err != nil {
		return err
	}
	b.follower.Mark()
	return nil
}

// Finish implements [watch.Ledger].
func (b *books) Finish(r watch.Request, res watch.Result) error {
	err := b.open(r.Runner)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(b.follower.Since(), func(e history.Entry) bool { return res.PID > 0 && e.By.PID == res.PID }) {
		if err := b.add(r, res); err != nil {
			return err
		}
		if res.Outcome == hostile.Qualified {
			err = fmt.Errorf("history: %s is not in %s, where it says that it noted itself", res.Run, b.history.Path())
		}
	}
	s := metrics.State{Report: res.Report, Runs: b.follower.Tally(), Drift: res.Drift}
	if res.Statement != nil {
		s.Expires = res.Statement.Expires
	}
	b.set(s)
	return err
}

// add notes a run that did not note itself.
func (b *books) add(r watch.Request, res watch.Result) error {
	e := history.Entry{Run: r.ID, Reason: r.Noted(), Started: r.Began, Finished: res.Ended, Outcome: hostile.Unproven, Why: reports.Harmless(res.Trouble), Folder: res.Folder}
	if res.Stopped {
		e.Outcome = history.Interrupted
	}
	if err := b.history.Finish(e); err != nil {
		return err
	}
	return b.update()
}

// Compare is the daemon's [watch.Comparison]. It is asked between Begin and Finish.
func (b *books) Compare(runner string, r *reports.Report) (*reports.Difference, error) {
	if err := b.open(runner); err != nil {
		return nil, err
	}
	return b.follower.Drift(r)
}

// Ran implements [watch.Meter]; Finish has told all of it.
func (b *books) Ran(watch.Request, watch.Result) {}

// Published implements [watch.Meter].
func (b *books) Published(until time.Time) { b.daemon.Published(until) }

// Identified implements [watch.Meter].
func (b *books) Identified(i watch.Identity) {
	b.daemon.Identified(metrics.Here{Runtime: i.Runtime, Config: i.Config, Image: i.Image, Harness: i.Harness, Kernel: i.Kernel, BootID: i.BootID})
}

func (b *books) set(s metrics.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = s
	b.proof = nil
	b.refresh()
}

// handler answers a scrape. It looks at the proof each time, which harness prove
// may have replaced since the last.
func (b *books) handler() http.Handler {
	r := b.metrics.Registry()
	h := promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.HTTPErrorOnError})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b.mu.Lock()
		b.refresh()
		b.mu.Unlock()
		h.ServeHTTP(w, req)
	})
}

// refresh reads the proof when its file is another one, and tells the state. The
// lock is held.
func (b *books) refresh() {
	now, err := os.Stat(proofFile(b.stateDir))
	if err == nil && b.proof != nil && os.SameFile(now, b.proof) && now.ModTime().Equal(b.proof.ModTime()) && now.Size() == b.proof.Size() {
		return
	}
	b.state.Proof, b.proof = time.Time{}, nil
	if err == nil {
		b.state.Proof, b.proof = provedAt(b.stateDir), now
	} else if !errors.Is(err, os.ErrNotExist) {
		slog.Warn("the proof cannot be read: " + reports.Harmless(err.Error()))
	}
	b.metrics.Set(b.state)
}
