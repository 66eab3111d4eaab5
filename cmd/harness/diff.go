package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
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
last run in the history, before the other one, that qualified the runner and
whose report is still there.

Exit code 0 when they are the same, 1 when they differ, 2 when a report cannot
be read. Durations alone are no difference.`, reports.TimingFactor, reports.TimingLeast, lastGood),
		Example: "  harness diff last-good out\n  harness diff monday/report.json tuesday/report.json --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			var both [2]*reports.Report
			for i, name := range args {
				if name == lastGood {
					continue
				}
				var err error
				if both[i], err = reportIn(name); err != nil {
					return usage(err)
				}
			}
			for i, name := range args {
				if name != lastGood {
					continue
				}
				var err error
				if both[i], err = of.lastGood(both[1-i]); err != nil {
					return usage(err)
				}
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

// reportIn reads a report.json, or that in a run's folder.
func reportIn(name string) (*reports.Report, error) {
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		name = filepath.Join(name, reports.ReportFile)
	}
	return reports.ReadFile(name)
}

// lastGood reads the report of the last good run before another, which may be a
// good one itself; of all where that is none of the history's, or nil.
func (f *ledgerFlags) lastGood(before *reports.Report) (*reports.Report, error) {
	h, err := f.ledger()
	if err != nil {
		return nil, err
	}
	entries, _, err := h.Entries(time.Time{})
	if err != nil {
		return nil, err
	}
	if before != nil {
		if i := slices.IndexFunc(entries, func(e history.Entry) bool { return e.Run == before.Run }); i >= 0 {
			entries = entries[:i]
		}
	}
	r, err := h.LastGoodReport(entries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lastGood, err)
	}
	if r == nil {
		err = fmt.Errorf("%s: no run in %s qualified the runner, or none before the other", lastGood, h.Path())
	}
	return r, err
}
