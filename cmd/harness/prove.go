package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/suites"
)

// proveFlags are what a proof is asked.
type proveFlags struct {
	config, out string
	mutants     []string
	json, list  bool
}

func proveCommand() *cobra.Command {
	var f proveFlags
	c := &cobra.Command{
		Use:   "prove",
		Short: "Lower one wall after the other, and check that it is noticed",
		Long: `Lower one wall after the other, or break one part of the harness after the
other, make the attempts, and compare each verdict with what was predicted of
that mutant. A mutant that nothing notices survived, and the proof fails.

Walls are lowered in memory and for the harness's own jobs only. Every attempt
stays bounded: by itself, by a guard around the run's cgroup, and in network
namespaces that lead nowhere else. See docs/safety.md.

A whole proof is kept in STATE_DIR/harness/proof.json: a later harness run says
how old it is, and run --require-proof 24h fails without a young one.

Exit codes: 0 every mutant was killed as predicted; 1 one survived, or turned
what was not predicted; 2 usage; 3 unproven: with nothing mutated not every trial
held, or a mutant could not be asked; 130 interrupted.`,
		Example: `  harness prove --config runner.yaml --out proof
  harness prove --mutant canary-missing --mutant scratch-unsized
  harness prove --list`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.list {
				return listMutants(cmd.OutOrStdout(), f.json)
			}
			return prove(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.config, "config", "", "runner configuration (default: the embedded one)")
	flags.StringVar(&f.out, "out", "", "folder for prove.json and junit.xml, not that of a run")
	flags.StringSliceVar(&f.mutants, "mutant", nil, "only this mutant; may be repeated")
	flags.BoolVar(&f.list, "list", false, "show the mutants and what each has to turn, and ask none")
	flags.BoolVar(&f.json, "json", false, "prove.json on stdout and nothing else; with --list the list")
	return c
}

// prove makes one proof, from the flags to the exit code.
func prove(ctx context.Context, f proveFlags, stdout, stderr io.Writer) error {
	if _, err := suites.MutantsNamed(f.mutants); err != nil {
		return usage(fmt.Errorf("--mutant: %w", err))
	}
	if err := f.check(); err != nil {
		return err
	}
	cfg, from, err := effective(f.config)
	if err != nil {
		return err
	}
	if err := root(); err != nil {
		return err
	}
	slog.Info("configuration: "+from, "runsc", cfg.Runtime.Path, "state_dir", cfg.StateDir)
	show := newShow(f.json, stdout, stderr)
	p, err := suites.Prove(ctx, suites.ProveOptions{Config: cfg, Mutants: f.mutants, Version: ownVersion(), Progress: show.proving})
	show.clear()
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	if p == nil {
		return unproven(fmt.Errorf("prove: %w", err))
	}
	files, err := writeProof(p, f.out, cfg.StateDir, err)
	if f.json {
		data, e := reports.EncodeProof(p)
		if e == nil {
			e = printed(stdout.Write(data))
		}
		err = errors.Join(err, e)
	} else {
		err = errors.Join(err, show.proof(p, files))
	}
	if err != nil {
		return unproven(err)
	}
	switch p.Outcome {
	case reports.Proven:
		return nil
	case reports.Disproven:
		return &exitError{code: exitRefused}
	default:
		return &exitError{code: exitUnproven}
	}
}

func (f proveFlags) check() error {
	if f.out == "" {
		return nil
	}
	st, err := os.Stat(f.out)
	if err == nil && !st.IsDir() {
		return usage(fmt.Errorf("--out %s is not a folder", f.out))
	}
	if _, err := os.Lstat(f.out + "/" + reports.ReportFile); err == nil {
		return usage(fmt.Errorf("--out %s holds the report of a run: choose another folder for the proof", f.out))
	}
	return nil
}

// writeProof writes the files of a proof and keeps it, unless what it made could
// not be removed.
func writeProof(p *reports.Proof, out, stateDir string, left error) ([]string, error) {
	data, err := reports.EncodeProof(p)
	if err != nil {
		return nil, errors.Join(left, err)
	}
	var files []string
	if out != "" {
		junit, err := reports.ProofJUnit(p)
		if err != nil {
			return nil, errors.Join(left, err)
		}
		if err := reports.WriteProofFiles(out, map[string][]byte{reports.ProofFile: data, reports.JUnitFile: junit}); err != nil {
			return nil, errors.Join(left, fmt.Errorf("--out: %w", err))
		}
		files = []string{out + "/" + reports.ProofFile, out + "/" + reports.JUnitFile}
	}
	if left != nil {
		return files, left
	}
	return files, keepProof(stateDir, p, data)
}

// proving tells how far a proof is.
func (s *show) proving(p suites.ProveProgress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Stage == "" {
		p.Stage = "mutants"
	}
	s.last = suites.Progress{Stage: p.Stage, Done: p.Done, Total: p.Total}
	if m := p.Mutant; m != nil && m.Killing != reports.Killed && m.Killing != reports.NotApplicable {
		s.bad++
	}
	switch {
	case s.live != nil:
		s.draw()
	case s.table:
	case p.Mutant != nil:
		fmt.Fprintln(s.out, reports.MutantLine(p.Mutant))
	}
}

// proof tells how the proof ended.
func (s *show) proof(p *reports.Proof, files []string) error {
	if len(files) == 0 {
		files = []string{"none was written: --out DIR writes prove.json and junit.xml"}
	}
	return reports.Matrix(s.out, p, reports.TableOptions{Width: s.width, Color: s.color, Files: files})
}

// listed is a mutant as --list tells it.
type listed struct {
	Name      string             `json:"name"`
	Title     string             `json:"title"`
	Part      reports.Part       `json:"part"`
	Attempt   string             `json:"attempt,omitempty"`
	Source    string             `json:"source"`
	Predicted []suites.Predicted `json:"predicted"`
}

func listMutants(w io.Writer, asJSON bool) error {
	var all []listed
	for _, m := range suites.Mutants() {
		l := listed{Name: m.Name, Title: m.Title, Part: m.Part, Source: m.Source, Predicted: m.Foretold()}
		if m.Of != nil {
			l.Attempt = m.Of.Name
		}
		all = append(all, l)
	}
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		return enc.Encode(all)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "mutant\tattempt\tturns\twhat is lowered or broken")
	for _, l := range all {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", l.Name, l.Attempt, turned(l.Predicted), l.Title)
	}
	return tw.Flush()
}

// turned counts what a mutant has to turn: "11 fell, 2 misnamed".
func turned(all []suites.Predicted) string {
	counts := map[string]int{}
	var order []string
	for _, p := range all {
		v := string(p.Verdict)
		if counts[v]++; counts[v] == 1 {
			order = append(order, v)
		}
	}
	out := ""
	for i, v := range order {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%d %s", counts[v], v)
	}
	return out
}
