package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
	"tenwalls.dev/harness/sandbox/evidence"
)

// lastGood stands for the report of the last run that qualified the runner.
const lastGood = "last-good"

func diffCommand() *cobra.Command {
	var of ledgerFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "diff A B", Short: "Say what changed between two runs", Args: arguments(cobra.ExactArgs(2)),
		Long: fmt.Sprintf(`Say what changed from run A to run B: verdicts, expected refusals, what was
tried (runtime, kernel, configuration, image, harness), what was in force, the
census of entry points, and durations that are another by a factor of %d and by
%s.

A and B are each a run's folder, a report.json, or %s: the report of the
last run in the history that qualified the runner and whose report is still
there.

Exit code 0 when they are the same, 1 when they differ, 2 when a report cannot
be read. Durations alone are no difference.`, reports.TimingFactor, reports.TimingLeast, lastGood),
		Example: "  harness diff last-good out\n  harness diff monday/report.json tuesday/report.json --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			var both [2]*reports.Report
			for i, name := range args {
				r, err := of.report(name)
				if err != nil {
					return usage(err)
				}
				both[i] = r
			}
			d := reports.Diff(both[0], both[1])
			var err error
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), d)
			} else {
				err = tell(cmd.OutOrStdout(), d.Text())
			}
			if err == nil && !d.Same {
				err = &exitError{code: exitRefused}
			}
			return err
		},
	}
	of.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// report reads one side of a comparison.
func (f *ledgerFlags) report(name string) (*reports.Report, error) {
	if name != lastGood {
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			name = filepath.Join(name, reports.ReportFile)
		}
		return reports.ReadFile(name)
	}
	h, err := f.ledger()
	if err != nil {
		return nil, err
	}
	entries, _, err := h.Entries(time.Time{})
	if err != nil {
		return nil, err
	}
	r, err := lastGoodOf(entries)
	if err == nil && r == nil {
		err = fmt.Errorf("%s: no run in %s qualified the runner", lastGood, h.Path())
	}
	return r, err
}

// lastGoodOf returns the report of the last run that qualified the runner and
// whose report is still there; nil when no run ever did.
func lastGoodOf(entries []history.Entry) (*reports.Report, error) {
	var gone []error
	for _, e := range slices.Backward(entries) {
		if !e.Good() {
			continue
		}
		r, err := kept(e)
		if err == nil {
			return r, nil
		}
		if len(gone) < 3 { // the latest tell enough
			gone = append(gone, err)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	return nil, errors.Join(append([]error{fmt.Errorf("%s: no report of a run that qualified the runner is there any more: give each run an --out of its own", lastGood)}, gone...)...)
}

// kept reads the report of a run from where that run put it, if it is still
// that run's to the byte.
func kept(e history.Entry) (*reports.Report, error) {
	if e.Folder == "" {
		return nil, fmt.Errorf("%s wrote no report", e.Run)
	}
	path := filepath.Join(e.Folder, reports.ReportFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Run, err)
	}
	if evidence.Digest(data) != e.Digests.Report {
		return nil, fmt.Errorf("%s: %s is another run's by now", e.Run, path)
	}
	return reports.Decode(data)
}
