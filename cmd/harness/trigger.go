package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func triggerCommand() *cobra.Command {
	var f daemonFlags
	var reason string
	c := &cobra.Command{
		Use: "trigger --reason WORDS", Short: "Ask the daemon for a run now",
		Long: `Ask the daemon for a run now, over its socket. The command ends when the run is
due, not when it has ended: harness status tells that. While a run is due
already, it is that one.`,
		Example: "  harness trigger --reason deploy",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return usage(errors.New("--reason WORDS is needed: the history of runs tells it"))
			}
			client, err := f.client()
			if err != nil {
				return err
			}
			if err := client.Trigger(cmd.Context(), reason); err != nil {
				return unproven(err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, in words; at most 256 bytes")
	f.add(c)
	return c
}
