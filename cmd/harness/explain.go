package main

import (
	"fmt"
	"slices"
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
			return tell(cmd.OutOrStdout(), explanation(a.Label(), describe(a)))
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
	common := inCommon(a.Trials)
	if len(common) > 0 {
		fmt.Fprintf(&b, "\nEvery route\n%s", strings.Join(common, ""))
	}
	apart := true // the route before had lines of its own
	for _, t := range a.Trials {
		own := slices.DeleteFunc(facts(t), func(f string) bool { return slices.Contains(common, f) })
		if apart || len(own) > 0 {
			b.WriteByte('\n')
		}
		apart = len(own) > 0
		principal := ""
		if t.Principal {
			principal = " (principal route)"
		}
		fmt.Fprintf(&b, "%s: %s%s\n%s", t.Route, t.Title, principal, strings.Join(own, ""))
	}
	return b.String()
}

// facts are what is written down of one route, a line each. The numbers are
// those of the default configuration.
func facts(t trialJSON) []string {
	out := []string{
		fmt.Sprintf("  expected  %s\n", t.Expected),
		fmt.Sprintf("  said by   %s\n", authority[t.By]),
		fmt.Sprintf("  source    %s\n", t.Source),
	}
	for _, l := range t.Lifts {
		out = append(out, lifting(l))
	}
	for _, w := range t.Wants {
		out = append(out, fmt.Sprintf("  host      %s (%s %s, %s: %s %s; otherwise %s)\n", w.Words, w.Observer, w.Value, w.Moment, w.Rule, reports.Amount(w.Bound, w.Unit), w.Breach))
	}
	return out
}

// lifting says what a lift is for. One of them lowers nothing.
func lifting(l hostile.Lift) string {
	if l == hostile.LiftAnswer {
		return fmt.Sprintf("  lifts     %s: lowers nothing, the filter refuses the same calls by a signal\n", l)
	}
	return fmt.Sprintf("  lifts     %s, to reach the wall behind it\n", l)
}

// inCommon are the facts that several routes all share.
func inCommon(trials []trialJSON) []string {
	if len(trials) < 2 {
		return nil
	}
	common := facts(trials[0])
	for _, t := range trials[1:] {
		its := facts(t)
		common = slices.DeleteFunc(common, func(f string) bool { return !slices.Contains(its, f) })
	}
	return common
}
