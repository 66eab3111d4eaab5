package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
	"tenwalls.dev/harness/reports/metrics"
)

// checkTextfile refuses, before the run, what would leave an older file in place
// or make one that says less than it seems to.
func (f runFlags) checkTextfile() error {
	if len(f.attempts) > 0 || f.filter != "" || f.principal {
		return errors.New("it tells how the whole set stands: not with --attempt, --label-filter or --principal")
	}
	if !strings.HasSuffix(f.textfile, ".prom") {
		return fmt.Errorf("%s: the textfile collector reads only names that end in .prom", f.textfile)
	}
	st, err := os.Stat(filepath.Dir(f.textfile))
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%s is not a folder", filepath.Dir(f.textfile))
	}
	return err
}

// tell writes the metrics after every run that was begun, also one that came to
// nothing: an older file would go on telling of an older run. A run that was
// killed writes none, and the time of the last run tells that.
func (n *note) tell(textfile string) error {
	if textfile == "" {
		return nil
	}
	f := n.history.Follow()
	damage, err := f.Update()
	tally := f.Tally()
	if err != nil { // then of this run alone, rather than nothing
		tally = history.TallyOf(n.entry)
	}
	for _, d := range damage {
		slog.Warn("history: " + reports.Harmless(d))
	}
	m := metrics.New(ownVersion())
	m.Set(metrics.State{Report: n.report, Runs: tally, Expires: n.entry.Expires, Proof: provedAt(n.stateDir), Drift: n.drift})
	if err = errors.Join(err, m.WriteTextfile(textfile)); err != nil {
		return unproven(fmt.Errorf("--textfile: %w", err))
	}
	return nil
}
