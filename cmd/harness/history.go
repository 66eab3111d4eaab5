package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
)

// ledgerFlags say whose history is meant.
type ledgerFlags struct{ config, stateDir string }

func (f *ledgerFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.config, "config", "", "runner configuration, for its state_dir (default:\nthe embedded one)")
	c.Flags().StringVar(&f.stateDir, "state-dir", "", "state folder, instead of a configuration")
	c.MarkFlagsMutuallyExclusive("config", "state-dir")
}

func (f *ledgerFlags) ledger() (*history.History, error) {
	if f.stateDir != "" {
		if st, err := os.Stat(f.stateDir); err != nil {
			return nil, usage(fmt.Errorf("--state-dir: %w", err))
		} else if !st.IsDir() {
			return nil, usage(fmt.Errorf("--state-dir: %s is no folder", f.stateDir))
		}
		return history.In(f.stateDir), nil
	}
	cfg, _, err := effective(f.config)
	if err != nil {
		return nil, err
	}
	return history.In(cfg.StateDir), nil
}

func historyCommand() *cobra.Command {
	var of ledgerFlags
	var since string
	var asJSON bool
	c := &cobra.Command{
		Use: "history", Short: "List the runs: good, bad, unproven and interrupted", Args: arguments(cobra.NoArgs),
		Long: `List every run that was begun with this state folder, oldest first: qualified,
refused, unproven, and interrupted, which is also what a run is called that was
begun and never finished. What is damaged in the file is told on stderr and
hides no other run.

A checksum shows a line that was torn or edited by hand. It shows nothing about
who could write the whole file.`,
		Example: "  harness history --since 7d\n  harness history --since 2026-03-01 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := sinceOf(since, time.Now())
			if err != nil {
				return usage(fmt.Errorf("--since %q: %w", since, err))
			}
			h, err := of.ledger()
			if err != nil {
				return err
			}
			return listRuns(h, from, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	of.add(c)
	c.Flags().StringVar(&since, "since", "", "only runs that started at most so long ago (12h,\n7d), or at that time or later (2026-03-01, UTC, or\n2026-03-01T08:00:00Z)")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// sinceOf reads a duration back from now, in days too, or a date.
func sinceOf(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(form, s); err == nil {
			return t, nil
		}
	}
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < 0 {
		return time.Time{}, errors.New("no duration (12h, 7d), date (2026-03-01) or time (2026-03-01T08:00:00Z)")
	}
	return now.Add(-d), nil
}

func listRuns(h *history.History, since time.Time, asJSON bool, stdout, stderr io.Writer) error {
	entries, damage, err := h.Entries(since)
	if err != nil {
		return unproven(err)
	}
	for _, d := range damage {
		fmt.Fprintln(stderr, "harness: warning:", reports.Harmless(d))
	}
	switch {
	case asJSON:
		return printJSON(stdout, struct {
			Runs   []history.Entry `json:"runs"`
			Damage []string        `json:"damage"`
		}{append([]history.Entry{}, entries...), append([]string{}, damage...)})
	case len(entries) == 0:
		return tell(stdout, "no run is noted in "+h.Path()+"\n")
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(runLine(e) + "\n")
	}
	return tell(stdout, b.String())
}

// runLine is one run: when, how it ended, how long it took, which, why, and what.
func runLine(e history.Entry) string {
	took := "-"
	if d := e.Finished.Sub(e.Started); !e.Finished.IsZero() && d >= 0 {
		took = fmt.Sprintf("%.1f s", d.Seconds())
	}
	return reports.Harmless(fmt.Sprintf("%s  %-11s  %7s  %s  %s: %s",
		e.Started.UTC().Format(time.RFC3339), e.Outcome, took, e.Run, e.Reason, e.Summary()))
}
