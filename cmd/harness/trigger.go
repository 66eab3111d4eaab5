package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func triggerCommand() *cobra.Command {
	var f daemonFlags
	var reason string
	var wait time.Duration
	c := &cobra.Command{
		Use: "trigger --reason WORDS", Short: "Ask the daemon for a run now",
		Long: `Ask the daemon for a run now, over its socket. The command ends when the run is
due, not when it has ended: harness status tells that. While a run is due
already, it is that one.

With --wait it ends with that run, or another that began after it was asked for,
and tells how that stands as harness status does: exit code 0 when it is
published, 1 when it was refused, 3 otherwise.`,
		Example: "  harness trigger --reason deploy\n  harness trigger --reason 'deploy: image 7' --wait 10m",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return usage(errors.New("--reason WORDS is needed: the history of runs tells it"))
			}
			client, err := f.client(cmd)
			if err != nil {
				return err
			}
			if wait > 0 {
				ctx, cancel := context.WithTimeoutCause(cmd.Context(), wait, fmt.Errorf("not ended within %s (--wait)", wait))
				defer cancel()
				s, err := client.Await(ctx, reason)
				if err != nil {
					return unproven(err)
				}
				return howItStands(cmd.OutOrStdout(), s, s.Text())
			}
			if err := client.Trigger(cmd.Context(), reason); err != nil {
				return unproven(err)
			}
			return tell(cmd.OutOrStdout(), "a run is due: harness status tells of it\n")
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, in words; at most 256 bytes")
	c.Flags().DurationVar(&wait, "wait", 0, "wait so long for the end of the run; 0: not at all")
	f.add(c)
	return c
}
