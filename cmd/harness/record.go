package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
	"tenwalls.dev/harness/sandbox/id"
)

// note is this run's entry in the history of its state folder.
type note struct {
	history *history.History
	entry   history.Entry
	report  *reports.Report // nil when the run came to none to rely on
}

// begin notes the run before anything of it is done, under the id that its
// report will have.
func begin(stateDir, reason string) (*note, error) {
	n := &note{history: history.In(stateDir), entry: history.Entry{
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
}

// wrote takes over where the report is.
func (n *note) wrote(dir string, w written) {
	if abs, err := filepath.Abs(dir); err == nil { // else where it was is not known any more
		dir = abs
	}
	n.entry.Folder, n.entry.Digests.Report, n.entry.Expires = dir, w.digest, w.expires
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
	if err := n.history.Finish(n.entry); err != nil {
		return unproven(err)
	}
	return nil
}
