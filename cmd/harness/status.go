package main

import (
	"github.com/spf13/cobra"

	"tenwalls.dev/harness/hostile"
)

func statusCommand() *cobra.Command {
	var f daemonFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "Say what the daemon holds qualified, until when, and why",
		Long: `Say what is qualified until when, the last run, the next one, and why. Exit code 0
while a qualification is published, 1 when the last run was refused, 3 otherwise.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			s, err := client.Status(cmd.Context())
			if err != nil {
				return unproven(err)
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), s)
			} else {
				err = tell(cmd.OutOrStdout(), s.Text())
			}
			switch {
			case err != nil:
				return err
			case s.Until != nil:
				return exitOf(hostile.Qualified)
			case s.Last != nil && s.Last.Outcome == hostile.Refused:
				return exitOf(hostile.Refused)
			}
			return exitOf(hostile.Unproven)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	f.add(c)
	return c
}
