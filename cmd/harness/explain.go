package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

func explainCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "explain NAME|N", Short: "Say what a step tries, what is expected where, and why", Args: arguments(cobra.ExactArgs(1)),
		Example: "  harness explain 6\n  harness explain memory",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, a := range hostile.Catalogue() {
				names = append(names, a.Name+"\t"+a.Title)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a, ok := hostile.Find(args[0])
			if !ok {
				return usage(fmt.Errorf("no attempt is named %q: use 1 to 10 or a name that harness list shows", args[0]))
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), describe(a))
			}
			return printed(io.WriteString(cmd.OutOrStdout(), explanation(a.Label(), describe(a))))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// authority is who says that the refusal came.
var authority = map[reports.By]string{
	reports.ByClaim:  "the payload, which was there when it was refused",
	reports.ByRunner: "the runner, by the reason for which the job ended",
	reports.ByHost:   "the host: there is nobody left inside to ask",
}

func explanation(label string, a attemptJSON) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", label, a.Title)
	fmt.Fprintf(&b, "Tries     %s.\nExpected  %s.\nBecause   %s.\n", a.Tries, a.Expected, a.Why)
	for _, t := range a.Trials {
		principal := ""
		if t.Principal {
			principal = " (principal route)"
		}
		fmt.Fprintf(&b, "\n%s: %s%s\n", t.Route, t.Title, principal)
		fmt.Fprintf(&b, "  expected  %s\n  said by   %s\n  source    %s\n", t.Expected, authority[t.By], t.Source)
		for _, l := range t.Lifts {
			fmt.Fprintf(&b, "  lifts     %s, to reach the wall behind it\n", l)
		}
		for _, w := range t.Wants {
			fmt.Fprintf(&b, "  host      %s (%s %s, %s: %s %s; otherwise %s)\n", w.Words, w.Observer, w.Value, w.Moment, w.Rule, bound(w), w.Breach)
		}
	}
	return b.String()
}

// bound tells the number of a want, as the default configuration makes it.
func bound(w reports.Want) string {
	return fmt.Sprintf("%d %s", w.Bound, w.Unit)
}
