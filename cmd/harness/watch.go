package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/watch"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

func watchCommand() *cobra.Command {
	var config string
	var check, notice bool
	c := &cobra.Command{
		Use: "watch", Short: "Qualify this host continuously, on every change and on a schedule",
		Long: `Qualify this host against the configuration that production uses: at the start,
on a schedule, and whenever runsc, the runner configuration, the base image, the
kernel or the harness changes. What qualifies is published as one signed file of
a short life, which is withdrawn the moment any of that changes, and on every
outcome but qualified.

SIGHUP asks for a run now, as harness trigger does. SIGTERM and SIGINT withdraw,
end the run and the daemon; exit code 0 then.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := watch.LoadConfig(config)
			if err != nil {
				return usage(errors.Join(err, mistakenForDaemon(config)))
			}
			if check {
				return checkDaemon(cmd, cfg)
			}
			if notice {
				return testNotice(cmd, cfg)
			}
			if err := root(); err != nil {
				return err
			}
			return watchHost(cmd.Context(), cfg)
		},
	}
	c.Flags().StringVar(&config, "config", watch.DefaultFile, "daemon configuration")
	c.Flags().BoolVar(&check, "check", false, "say what is wrong with the configuration, and end")
	c.Flags().BoolVar(&notice, "test-notice", false, "deliver a notice that says it is a test to each receiver, and end")
	c.MarkFlagsMutuallyExclusive("check", "test-notice")
	return c
}

// testNotice says of each receiver whether a notice arrives.
func testNotice(cmd *cobra.Command, cfg watch.Config) error {
	told, err := watch.TestNotice(cmd.Context(), cfg)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", cfg.File(), err))
	}
	if len(told) == 0 {
		return usage(fmt.Errorf("%s: notify: names nobody", cfg.File()))
	}
	failed := false
	for _, name := range slices.Sorted(maps.Keys(told)) {
		words := "delivered"
		if err := told[name]; err != nil {
			words, failed = "not delivered: "+reports.Harmless(err.Error()), true
		}
		if err := printed(fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", name, words)); err != nil {
			return err
		}
	}
	if failed {
		return unproven(errors.New("not every receiver took the notice"))
	}
	return nil
}

// checkDaemon looks at the runner configuration as well: that is what the daemon
// qualifies, and without it the daemon says so only once it runs.
func checkDaemon(cmd *cobra.Command, cfg watch.Config) error {
	runner, err := runsc.LoadConfig(cfg.Runner)
	if err != nil {
		return usage(fmt.Errorf("%s: runner: %w", cfg.File(), err))
	}
	if err := cfg.CheckFiles(); err != nil {
		return usage(err)
	}
	warn(cmd.ErrOrStderr(), slices.Concat(emptyFile(cfg.File()), cfg.Warnings(), missing(cmd.Context(), runner)))
	return printed(fmt.Fprintf(cmd.OutOrStdout(), "%s: no fault found, nor in %s\n", cfg.File(), cfg.Runner))
}

// mistakenForDaemon says so when the file is a runner configuration.
func mistakenForDaemon(file string) error {
	if _, err := runsc.LoadConfig(file); err != nil {
		return nil
	}
	return fmt.Errorf("%s is a runner configuration: a daemon configuration (deploy/harness.yaml is one) names it in the field runner", file)
}

func watchHost(ctx context.Context, cfg watch.Config) error {
	host, err := watch.ThisHost()
	if err != nil {
		return unproven(err)
	}
	// Elsewhere SIGHUP interrupts; here it asks for a run. It is ignored for the
	// moment in between, so that it never ends the daemon.
	signal.Ignore(unix.SIGHUP)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	defer signal.Stop(hangup)
	for _, w := range cfg.Warnings() {
		slog.Warn(w)
	}
	b := newBooks(cfg.Runner, ownVersion())
	err = watch.Serve(ctx, watch.Parts{
		Config: cfg, Host: host, Hangup: hangup, Version: ownVersion(), Log: slog.Default(), Ledger: b, Meter: b, Compare: b.Compare, Metrics: b.handler(),
	})
	if err != nil {
		return unproven(fmt.Errorf("watch: %w", err))
	}
	return nil
}

// daemonFlags say which daemon is asked.
type daemonFlags struct{ config, socket string }

func (f *daemonFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.config, "config", "", "daemon configuration that names the socket")
	c.Flags().StringVar(&f.socket, "socket", watch.DefaultConfig().Socket.Path, "the daemon's socket")
	c.MarkFlagsMutuallyExclusive("config", "socket")
}

func (f *daemonFlags) client(cmd *cobra.Command) (watch.Client, error) {
	if f.config == "" {
		return watch.Client{Socket: f.socket}, nil
	}
	cfg, err := watch.LoadConfig(f.config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return watch.Client{}, usage(err)
	case err != nil: // all the more is the daemon to be asked
		socket := watch.SocketIn(f.config)
		warn(cmd.ErrOrStderr(), []string{err.Error(), "asked all the same, at " + socket})
		return watch.Client{Socket: socket}, nil
	}
	return watch.Client{Socket: cfg.Socket.Path}, nil
}
