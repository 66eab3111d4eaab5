package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/reports"
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
	r, err := h.LastGoodReport(entries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lastGood, err)
	}
	if r == nil {
		err = fmt.Errorf("%s: no run in %s qualified the runner", lastGood, h.Path())
	}
	return r, err
}
