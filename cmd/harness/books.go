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

	history *history.History // of the run that goes on, or of the last
	before  int              // runs in it when that began

	mu       sync.Mutex // over what a scrape reads
	state    metrics.State
	stateDir string
	proof    os.FileInfo // of what was read of the proof last
}

// newBooks opens the books with what earlier daemons left.
func newBooks(runner, version string) *books {
	m := metrics.New(version)
	b := &books{metrics: m, daemon: metrics.NewDaemon(m)}
	entries, err := b.open(runner)
	if err != nil { // the daemon says so at its first look, and asks again at each run
		slog.Warn("the history of runs is not known yet: " + reports.Harmless(err.Error()))
		return b
	}
	b.told(entries)
	return b
}

// open reads the ledger that belongs to a runner configuration.
func (b *books) open(runner string) ([]history.Entry, error) {
	cfg, err := runsc.LoadConfig(runner)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.stateDir = cfg.StateDir
	b.mu.Unlock()
	b.history = history.In(cfg.StateDir)
	return b.entries()
}

func (b *books) entries() ([]history.Entry, error) {
	entries, damage, err := b.history.Entries(time.Time{})
	for _, d := range damage {
		slog.Warn("history: " + reports.Harmless(d))
	}
	return entries, err
}

// told sets the metrics after a restart: the last run that ended, with its report
// where that is still there.
func (b *books) told(entries []history.Entry) {
	s := metrics.State{Runs: entries}
	last := -1
	for i, e := range slices.Backward(entries) {
		if e.Outcome != history.Running {
			last = i
			break
		}
	}
	if last >= 0 {
		s.Expires = entries[last].Expires
		if r, err := b.history.Report(entries[last]); err == nil {
			s.Report = r
			s.Drift, _ = b.history.Drift(entries, r) // not compared is not told
		}
	}
	b.set(s)
}

// Begin implements [watch.Ledger].
func (b *books) Begin(r watch.Request) error {
	entries, err := b.open(r.Runner)
	b.before = len(entries)
	return err
}

// Finish implements [watch.Ledger].
func (b *books) Finish(r watch.Request, res watch.Result) error {
	entries, err := b.entries()
	if err != nil {
		return err
	}
	since := entries[min(b.before, len(entries)):]
	if !slices.ContainsFunc(since, func(e history.Entry) bool { return res.PID > 0 && e.By.PID == res.PID }) {
		if entries, err = b.add(r, res); err != nil {
			return err
		}
		if res.Outcome == hostile.Qualified {
			err = fmt.Errorf("history: %s is not in %s, where it says that it noted itself", res.Run, b.history.Path())
		}
	}
	s := metrics.State{Report: res.Report, Runs: entries, Drift: res.Drift}
	if res.Statement != nil {
		s.Expires = res.Statement.Expires
	}
	b.set(s)
	return err
}

// add notes a run that did not note itself.
func (b *books) add(r watch.Request, res watch.Result) ([]history.Entry, error) {
	e := history.Entry{Run: r.ID, Reason: r.Noted(), Started: r.Began, Finished: res.Ended, Outcome: hostile.Unproven, Why: reports.Harmless(res.Trouble), Folder: res.Folder}
	if res.Stopped {
		e.Outcome = history.Interrupted
	}
	if err := b.history.Finish(e); err != nil {
		return nil, err
	}
	return b.entries()
}

// Compare is the daemon's [watch.Comparison].
func (b *books) Compare(runner string, r *reports.Report) (*reports.Difference, error) {
	cfg, err := runsc.LoadConfig(runner)
	if err != nil {
		return nil, err
	}
	h := history.In(cfg.StateDir)
	entries, _, err := h.Entries(time.Time{})
	if err != nil {
		return nil, err
	}
	return h.Drift(entries, r)
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
