package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// note is this run's entry in the history of its state folder.
type note struct {
	history  *history.History
	stateDir string
	entry    history.Entry
	report   *reports.Report     // nil when the run came to none to rely on
	drift    *reports.Difference // from the last good run before; nil: not compared
}

// begin notes the run before anything of it is done, under the id that its
// report will have.
func begin(stateDir, reason string) (*note, error) {
	n := &note{history: history.In(stateDir), stateDir: stateDir, entry: history.Entry{
		Run: string(id.New("run")), Reason: reports.Harmless(reason), Started: time.Now(),
	}}
	return n, n.history.Begin(n.entry)
}

// judged takes over what the report says, also why it proves nothing where that
// lies in no trial.
func (n *note) judged(r *reports.Report) {
	reason := n.entry.Reason
	n.entry = history.Of(r)
	n.entry.Reason = reason
	if n.entry.Why == "" {
		n.entry.Why = reports.Harmless(r.Unproven)
	}
	n.report = r
	n.compare()
}

// outBecomes names the folder that --out is renamed to when the run has ended, by
// whoever started it: harness watch, which thereby tells a whole folder from one
// that was left.
const outBecomes = "TENWALLS_OUT_BECOMES"

// wrote takes over where the report is.
func (n *note) wrote(dir string, w written) {
	dir = cmp.Or(os.Getenv(outBecomes), dir)
	if abs, err := filepath.Abs(dir); err == nil { // else where it was is not known any more
		dir = abs
	}
	n.entry.Folder, n.entry.Digests.Report, n.entry.Expires = dir, w.digest, w.expires
}

// compare tells what is otherwise in force than in the last good run, also where
// every wall held.
func (n *note) compare() {
	f := n.history.Follow()
	_, err := f.Update()
	if err == nil {
		n.drift, err = f.Drift(n.report)
	}
	if err != nil {
		slog.Warn("drift: nothing to compare with: " + reports.Harmless(err.Error()))
	}
	if n.drift == nil {
		return
	}
	n.report.Drift = n.drift.DriftWords()
	n.entry.Drift = len(n.report.Drift)
	for _, words := range n.report.Drift {
		slog.Warn("drift: " + words)
	}
}

// keep keeps a copy of the report of a good run for the runs to come. Without
// it they have less to compare with, and nothing else is wrong.
func (n *note) keep() {
	if n.report == nil || !n.entry.Good() {
		return
	}
	data, err := reports.Encode(n.report)
	if digest := evidence.Digest(data); err == nil && n.entry.Digests.Report != "" && n.entry.Digests.Report != digest {
		err = errors.New("history: keep report: it is encoded otherwise than it was written")
	}
	if err == nil {
		err = n.history.KeepGood(data)
	}
	if err != nil {
		slog.Warn("the report is not kept for comparison: " + reports.Harmless(err.Error()))
		return
	}
	n.entry.Digests.Report = evidence.Digest(data)
}

// failed takes over why there is no report to rely on, and says so.
func (n *note) failed(err error) error {
	n.entry.Outcome, n.entry.Why, n.report = hostile.Unproven, reports.Harmless(err.Error()), nil
	return unproven(err)
}

func (n *note) interrupted(ctx context.Context) {
	n.entry.Outcome, n.entry.Why = history.Interrupted, reports.Harmless(fmt.Sprint(context.Cause(ctx)))
}

// finish notes how the run ended. What is not noted was not shown: without the
// line the history tells an interrupted run.
func (n *note) finish() error {
	if n.entry.Finished.IsZero() {
		n.entry.Finished = time.Now()
	}
	n.keep()
	if err := n.history.Finish(n.entry); err != nil {
		return unproven(err)
	}
	return nil
}
