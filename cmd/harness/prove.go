package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/suites"
)

func proveCommand() *cobra.Command {
	var config string
	var names []string
	c := &cobra.Command{
		Use:  "prove",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return prove(cmd.Context(), config, names, cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&config, "config", "", "runner configuration (default: the embedded one)")
	c.Flags().StringSliceVar(&names, "mutant", nil, "only this mutant; may be repeated")
	return c
}

func prove(ctx context.Context, config string, names []string, w io.Writer) error {
	cfg, _, err := effective(config)
	if err != nil {
		return err
	}
	p, err := suites.Prove(ctx, suites.ProveOptions{Config: cfg, Mutants: names, Version: ownVersion(), Progress: func(p suites.ProveProgress) {
		if p.Mutant == nil {
			return
		}
		m := p.Mutant
		fmt.Fprintf(w, "%-14s %-28s %6d ms  %s\n", m.Killing, m.Name, m.DurationMS, m.Reason[:min(len(m.Reason), 150)])
		for _, t := range m.Trials {
			if t.Verdict != "held" {
				fmt.Fprintf(w, "      %-9s %-42s %q %.900s\n", t.Verdict, t.ID, t.Basis, t.Reason)
			}
		}
	}})
	if err != nil {
		return err
	}
	for _, t := range p.Baseline {
		if t.Verdict != "held" {
			fmt.Fprintln(w, "BASE", t.ID, t.Verdict, t.Reason)
		}
	}
	fmt.Fprintln(w, p.Outcome, p.DurationMS)
	return nil
}
