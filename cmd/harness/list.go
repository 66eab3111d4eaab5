package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
	"tenwalls.dev/harness/suites"
)

// attemptJSON is an attempt as list and explain print it.
type attemptJSON struct {
	Step     int         `json:"step"` // 0 for a contract check
	Name     string      `json:"name"`
	Title    string      `json:"title"`
	Tries    string      `json:"tries"`
	Expected string      `json:"expected"`
	Why      string      `json:"why"`
	Trials   []trialJSON `json:"trials"`
}

// trialJSON is one route with what is expected of it.
type trialJSON struct {
	ID        string          `json:"id"`
	Route     string          `json:"route"`
	Title     string          `json:"title"`
	Principal bool            `json:"principal"`
	Labels    []string        `json:"labels"`
	Expected  hostile.Refusal `json:"expected"`
	By        reports.By      `json:"by"`
	Source    string          `json:"source"`
	Lifts     []hostile.Lift  `json:"lifts"`
	Wants     []reports.Want  `json:"wants"`
}

func describe(a *hostile.Attempt) attemptJSON {
	out := attemptJSON{Step: a.Step, Name: a.Name, Title: a.Title, Tries: a.Tries, Expected: a.Expected, Why: a.Why, Trials: []trialJSON{}}
	for _, t := range suites.Trials() {
		if t.Attempt != a {
			continue
		}
		t := t.Under(runsc.DefaultConfig()) // the numbers of the default configuration
		r, _ := a.Route(t.Route)
		out.Trials = append(out.Trials, trialJSON{
			ID: t.ID(), Route: t.Route, Title: r.Title, Principal: t.Principal(), Labels: t.Labels(), Expected: t.Expected,
			By: t.By, Source: t.Source, Lifts: append([]hostile.Lift{}, t.Lifts()...), Wants: append([]reports.Want{}, t.Wants...),
		})
	}
	return out
}

func listCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "Show the attempts and their routes", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []attemptJSON
			for _, a := range hostile.Catalogue() {
				all = append(all, describe(a))
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			return tell(cmd.OutOrStdout(), listing(all))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, with labels, expectations and lifts")
	return c
}

func listing(all []attemptJSON) string {
	var b strings.Builder
	trials := 0
	for _, a := range all {
		fmt.Fprintf(&b, "%s %s: %s\n", a.step(), a.Name, a.Title)
		for _, t := range a.Trials {
			fmt.Fprintf(&b, "     %-22s %s\n", t.Route, t.Title)
		}
		trials += len(a.Trials)
	}
	fmt.Fprintf(&b, "\n%d attempts and contract checks, %d trials. The first route of each is its principal one.\n", len(all), trials)
	return b.String()
}

func (a attemptJSON) step() string {
	if a.Step == 0 {
		return "   -"
	}
	return fmt.Sprintf("%4d", a.Step)
}

func printJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return unproven(fmt.Errorf("encode result: %w", err))
	}
	return printed(w.Write(append(data, '\n')))
}
