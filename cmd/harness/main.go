// Command harness makes hostile attempts inside a real gVisor runsc sandbox and
// checks, on the host, that a named refusal at a named place answered each.
//
// What a run of it does not prove is printed at the end of every run: see
// suites.CannotShow.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/reports"
)

func main() {
	act.Main() // first: the program starts itself again for controls
	os.Exit(harness(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// harness runs one command line and returns its exit code.
func harness(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := interruptible(stderr)
	defer stop()
	cmd := command()
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return int(exitQualified)
	}
	var e *exitError
	if !errors.As(err, &e) { // cobra's own: an unknown subcommand
		e = &exitError{code: exitUsage}
		err = fmt.Errorf("%w (see harness --help)", err)
	}
	say(stderr, err)
	return int(e.code)
}

// say writes an error, each of those that were joined on lines of its own. Words
// of the guest and of the runtime may be in it.
func say(w io.Writer, err error) {
	switch e := err.(type) { //nolint:errorlint // only the outermost is taken apart
	case nil:
	case *exitError:
		say(w, e.err)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			say(w, one)
		}
	default:
		for i, line := range strings.Split(err.Error(), "\n") {
			prefix := "harness: "
			if i > 0 {
				prefix = "  "
			}
			fmt.Fprintln(w, prefix+reports.Harmless(line))
		}
	}
}

// command is the root with every subcommand.
func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "harness",
		Short: "Make hostile attempts inside a real runsc sandbox, and check that named walls answered them",
		Long: `harness makes hostile attempts inside a real gVisor runsc sandbox and checks, on
the host, that a named refusal at a named place answered each of them.

Exit codes: 0 qualified; 1 a wall fell or was misnamed; 2 usage or
configuration; 3 unproven (silent, blind or broken, or it could not run at all);
4 attestation invalid or expired; 130 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(cmd.Help(), usage(errors.New("say which subcommand")))
		},
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { slog.SetDefault(logger(cmd.ErrOrStderr())) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath()))
	})
	root.AddCommand(runCommand(), proveCommand(), watchCommand(), statusCommand(), triggerCommand(), listCommand(), explainCommand(),
		doctorCommand(), configCommand(), verifyCommand(), historyCommand(), diffCommand(), versionCommand())
	return root
}

// logger writes text on a terminal and JSON otherwise, into the journal with
// priorities.
func logger(w io.Writer) *slog.Logger {
	if _, _, ok := terminal(w); ok {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	if inJournal(w, os.Getenv("JOURNAL_STREAM")) {
		return slog.New(newJournal(w))
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}

// interrupted is how a run ends that was told to.
func interrupted(ctx context.Context, err error) error {
	words := "no report was written"
	if err == nil {
		words += ", and everything that the run made is removed"
	}
	return errors.Join(err, &exitError{exitInterrupted, fmt.Errorf("%w: %s", context.Cause(ctx), words)})
}
