package main

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/spf13/cobra"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
	"tenwalls.dev/harness/suites"
)

// runFlags are what a run is asked.
type runFlags struct {
	config, out, key, filter string
	reason, textfile, format string
	attempts                 []string
	principal, json          bool
	nice                     int
	validFor, requireProof   time.Duration
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Make the attempts and judge what was seen",
		Long: `Make the attempts inside a real runsc, observe the host, judge, and remove
everything that was made. With --out the report is written, and attested with a
key; capabilities.json is written only when every trial was asked and held.

Without --config the default configuration is used (harness config init prints
it), with runsc from beside the harness, else from PATH, else from the path that
the default names.

Every run is noted in STATE_DIR/harness/history.jsonl before it begins and when
it has ended (harness history).

On a terminal one line tells the progress and a table the end. NO_COLOR takes
the colours away, TERM=dumb the progress too. In a pipe, a file, or with CI set,
each verdict is a line of its own.`,
		Example: `  harness run --config runner.yaml --out out
  harness run --attempt memory --attempt 5
  harness run --label-filter 'step:2 && half:host'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.config, "config", "", "runner configuration (default: the embedded one)")
	flags.StringVar(&f.out, "out", "", "folder for report.json, junit.xml,\nattestation.json and capabilities.json")
	flags.StringSliceVar(&f.attempts, "attempt", nil, "only this attempt, by name or step number;\nmay be repeated")
	flags.StringVar(&f.filter, "label-filter", "", "only trials whose labels match, in Ginkgo's\nlanguage (harness list --json shows labels)")
	flags.BoolVar(&f.principal, "principal", false, "only each attempt's principal route")
	flags.BoolVar(&f.json, "json", false, "report.json on stdout and nothing else")
	flags.StringVar(&f.key, "key", "", "Ed25519 private key that signs the attestation,\nPKCS#8 PEM (default: STATE_DIR/keys/harness.key,\nmade once)")
	flags.StringVar(&f.reason, "reason", "hand", "why it runs, for the history: hand, start,\nschedule, change, deploy or trigger, and what\nbehind a colon: \"deploy: image 7\"")
	flags.StringVar(&f.format, "format", "text", "text, or github: annotations of what did not hold,\nand a job summary")
	flags.StringVar(&f.textfile, "textfile", "", "metrics of the whole set for the node exporter's\ntextfile collector, a name that ends in .prom")
	flags.DurationVar(&f.requireProof, "require-proof", 0, "fail unproven when the last whole proof (harness\nprove) is older than that `age`, or of another\nhost, harness, runtime or configuration")
	flags.IntVar(&f.nice, "nice", 0, "nice value of the sandboxes, 0 to 19; the harness\nkeeps its own, since it enforces the caps")
	flags.DurationVar(&f.validFor, "valid-for", 24*time.Hour, "validity of the attestation")
	return c
}

// selection is the trials that the flags ask for, at least one.
func (f runFlags) selection() (func(*suites.Trial) bool, error) {
	named, err := suites.Selection(f.attempts)
	if err != nil {
		return nil, usage(fmt.Errorf("--attempt: %w", err))
	}
	labelled, err := types.ParseLabelFilter(f.filter)
	if err != nil {
		return nil, usage(fmt.Errorf("--label-filter %q: %s", f.filter, filterProblem(err)))
	}
	selected := func(t *suites.Trial) bool {
		return named(t) && (!f.principal || t.Principal()) && labelled(t.Labels())
	}
	for _, t := range suites.Trials() {
		if selected(t) {
			return selected, nil
		}
	}
	return nil, usage(errors.New("no trial is selected: harness list --json shows the attempts, routes and labels that there are"))
}

// ginkgoStyle is Ginkgo's mark-up of its own messages.
var ginkgoStyle = regexp.MustCompile(`\{\{[a-z/]*\}\}`)

// filterProblem is what Ginkgo says of a filter, without its colours and links.
func filterProblem(err error) string {
	var g types.GinkgoError
	if !errors.As(err, &g) {
		return err.Error()
	}
	return strings.ReplaceAll(strings.TrimSpace(ginkgoStyle.ReplaceAllString(g.Message, "")), "\n", ": ")
}

// check looks at what can be wrong before anything is done.
func (f runFlags) check() error {
	if f.validFor < time.Minute {
		return usage(fmt.Errorf("--valid-for %s: must be a minute or more", f.validFor))
	}
	if f.nice < 0 || f.nice > 19 {
		return usage(fmt.Errorf("--nice %d: must be 0 to 19", f.nice))
	}
	if f.requireProof < 0 {
		return usage(fmt.Errorf("--require-proof %s: must not be negative", f.requireProof))
	}
	if f.key != "" && f.out == "" {
		return usage(errors.New("--key signs the attestation, which is written only with --out DIR"))
	}
	if f.format != "text" && f.format != "github" {
		return usage(fmt.Errorf("--format %q: text or github", f.format))
	}
	if f.format == "github" && f.json {
		return usage(errors.New("--json leaves stdout to the report alone: not with --format github"))
	}
	if f.textfile != "" {
		if err := f.checkTextfile(); err != nil {
			return usage(fmt.Errorf("--textfile: %w", err))
		}
	}
	if f.out == "" {
		return nil
	}
	if st, err := os.Stat(f.out); err == nil && !st.IsDir() {
		return usage(fmt.Errorf("--out %s is not a folder", f.out))
	}
	return nil
}

// staySmall has the collector work harder from 24 MiB on, unless whoever runs
// says otherwise (GOMEMLIMIT): what is observed is the machine's memory too. It
// is no bound, and costs nothing where the harness waits.
func staySmall() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(24 << 20)
	}
}

// run makes one run, from the flags to the exit code.
func run(ctx context.Context, f runFlags, stdout, stderr io.Writer) error {
	selected, err := f.selection()
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return err
	}
	cfg, from, err := effective(f.config)
	if err != nil {
		return err
	}
	if err := root(); err != nil {
		return err
	}
	sign, err := signer(f, cfg.StateDir)
	if err != nil {
		return err
	}
	slog.Info("configuration: "+from, "runsc", cfg.Runtime.Path, "state_dir", cfg.StateDir)
	staySmall()
	n, err := begin(cfg.StateDir, f.reason)
	if err != nil {
		return unproven(err)
	}
	all := func(stdout io.Writer) error {
		// The outcome's exit code stands first: it is what is told.
		return errors.Join(attempt(ctx, f, cfg, sign, selected, n, stdout, stderr), n.finish(), n.tell(f.textfile))
	}
	if f.format == "github" {
		return annotated(f, n, all, stdout)
	}
	return all(stdout)
}

// attempt makes the attempts, tells how they ended, and fills in the note.
func attempt(ctx context.Context, f runFlags, cfg runsc.Config, sign crypto.Signer, selected func(*suites.Trial) bool, n *note, stdout, stderr io.Writer) error {
	show := newShow(f.json, stdout, stderr)
	r, err := suites.Run(ctx, suites.Options{Config: cfg, Run: n.entry.Run, Select: selected, Version: ownVersion(), Nice: f.nice, Progress: func(p suites.Progress) {
		if ctx.Err() == nil || p.Trial == nil { // what an interruption broke is no verdict to tell
			show.progress(p)
		}
	}})
	show.clear()
	if ctx.Err() != nil {
		n.interrupted(ctx)
		return interrupted(ctx, err)
	}
	if r == nil {
		return n.failed(fmt.Errorf("run: %w", err))
	}
	requireProof(r, cfg.StateDir, f.requireProof)
	left := err // what could not be removed; the report stands, and says so
	n.judged(r)
	var files []string
	if f.out != "" {
		w, err := write(r, f, cfg, sign)
		if err != nil {
			return n.failed(errors.Join(err, left))
		}
		n.wrote(f.out, w)
		files = w.paths
	}
	if f.json {
		err = reportJSON(stdout, r)
	} else {
		err = show.report(r, files)
	}
	if err := errors.Join(err, left); err != nil {
		if r.Outcome == hostile.Refused { // which is worse, and no less true
			return &exitError{exitRefused, err}
		}
		return unproven(err)
	}
	return exitOf(r.Outcome)
}

func reportJSON(w io.Writer, r *reports.Report) error {
	data, err := reports.Encode(r)
	if err != nil {
		return err
	}
	return printed(w.Write(data))
}

// root is the need that everything else stands on.
func root() error {
	if os.Geteuid() != 0 {
		return unproven(fmt.Errorf("not root (uid %d): cgroups, network namespaces, mounts, fanotify and runsc need it: run it as root, for example with sudo", os.Geteuid()))
	}
	return nil
}
