package main

import (
	"io"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/watch"
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
			client, err := f.client(cmd)
			if err != nil {
				return err
			}
			s, err := client.Status(cmd.Context())
			if err != nil {
				return unproven(err)
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), s); err != nil {
					return err
				}
				return howItStands(io.Discard, s, "")
			}
			return howItStands(cmd.OutOrStdout(), s, s.Text())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	f.add(c)
	return c
}

// howItStands tells how the daemon stands, and ends with the exit code for that.
func howItStands(to io.Writer, s *watch.Status, words string) error {
	err := tell(to, words)
	switch {
	case err != nil:
		return err
	case s.Until != nil:
		return exitOf(hostile.Qualified)
	case s.Last != nil && s.Last.Outcome == hostile.Refused:
		return exitOf(hostile.Refused)
	}
	return exitOf(hostile.Unproven)
}
