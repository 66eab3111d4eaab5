// Package suites pairs the hostile attempts with the observers: what is
// expected of each route, in which sandbox it is tried, and what follows from
// what was recorded.
//
// Collecting touches the world and decides nothing; judging decides everything
// and touches nothing ([Judge] takes recorded evidence, so that anyone can
// judge again later). The Ginkgo specs assert verdicts over evidence that was
// collected once, concurrently.
//
// What this package does not prove: that a wall stands which no trial names.
// Its list of trials is its claim, and the report names each.
package suites

import (
	"fmt"
	"slices"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Trial is one route with what is expected of it, written down beside the
// sentence that it stands on.
type Trial struct {
	Attempt  *hostile.Attempt
	Route    string
	Expected hostile.Refusal
	By       reports.By
	Source   string // the row or sentence of the contract
	Wants    []reports.Want

	cell *Cell
}

// ID is stable and unique: "step-05/processor/relay".
func (t Trial) ID() string {
	if t.Attempt.Step == 0 {
		return "contract/" + t.Attempt.Name + "/" + t.Route
	}
	return fmt.Sprintf("step-%02d/%s/%s", t.Attempt.Step, t.Attempt.Name, t.Route)
}

// Name is how the payload is asked for it: "processor/relay".
func (t Trial) Name() string { return t.Attempt.Name + "/" + t.Route }

// Cell is one sandboxed job of a run. Routes that do not disturb each other
// share one; routes that end their job have one each.
type Cell struct {
	Name  string
	Lifts []hostile.Lift // named in the report of every trial in the cell
	// Change does the lifts, or what the attempt needs beside them, on the
	// walls of this job only.
	Change func(*runsc.Walls)
	// Limits lowers the job's own limits below the grant.
	Limits func(*sandbox.Limits)
	// Params are what the payload has to know, from what stands in this run.
	Params func(*Scene) map[string]string
	// Inputs are the job's inputs, by their paths below /inputs.
	Inputs []string
	// Outputs are the declared artifacts.
	Outputs []sandbox.Output
	// Env is what the job declares.
	Env map[string]string
	// Cost is about how much processor time the job takes. It only orders
	// the work.
	Cost time.Duration
	// Beside names a cell that has to run while this one does.
	Beside string
	// Then is done to the job once it runs: cancel it, kill its runner.
	Then Act
	// Witness marks a cell that makes no attempt: it stands in the world for
	// others (the neighbour), or shows that an observer sees (the granted
	// neighbour).
	Witness bool

	trials []*Trial
}

// Act is what the harness does to a running job.
type Act string

// Acts.
const (
	LetRun     Act = ""
	Cancel     Act = "cancel"
	KillRunner Act = "kill the runner"
)

var cells []*Cell

// place puts a cell with its trials into the suite. It panics on what only a
// programmer can get wrong.
func place(c Cell, trials ...Trial) *Cell {
	if slices.ContainsFunc(cells, func(o *Cell) bool { return o.Name == c.Name }) || c.Name == "" {
		panic("suites: cell " + c.Name + " is there already")
	}
	if len(trials) == 0 && !c.Witness {
		panic("suites: cell " + c.Name + " has no trials")
	}
	for _, t := range trials {
		if _, ok := t.Attempt.Route(t.Route); !ok || t.Source == "" || t.Expected == (hostile.Refusal{}) || t.By == "" {
			panic("suites: trial " + t.ID() + ": no such route, or no source, expectation or authority")
		}
		for _, o := range Trials() {
			if o.ID() == t.ID() {
				panic("suites: trial " + t.ID() + " is there already")
			}
		}
		t.cell = &c
		c.trials = append(c.trials, &t)
	}
	cells = append(cells, &c)
	return &c
}

// Trials returns every trial: by step, then the contract checks, each in the
// catalogue's order of routes.
func Trials() []*Trial {
	var out []*Trial
	for _, a := range hostile.Catalogue() {
		for _, r := range a.Routes {
			for _, c := range cells {
				for _, t := range c.trials {
					if t.Attempt == a && t.Route == r.Name {
						out = append(out, t)
					}
				}
			}
		}
	}
	return out
}

// Principal tells whether the trial takes the attempt's principal route.
func (t Trial) Principal() bool { return t.Attempt.Routes[0].Name == t.Route }

// report is the trial before anything was collected.
func (t Trial) report(place string) reports.Trial {
	return reports.Trial{
		ID: t.ID(), Step: t.Attempt.Step, Attempt: t.Attempt.Name, Route: t.Route, Job: place,
		Lifts: append([]hostile.Lift{}, t.cell.Lifts...), Expected: t.Expected, By: t.By, Source: t.Source,
		Wants: t.Wants,
	}
}

// beside puts one more trial into a cell that is there already.
func beside(cell string, t Trial) {
	i := slices.IndexFunc(cells, func(c *Cell) bool { return c.Name == cell })
	if i < 0 {
		panic("suites: no cell " + cell)
	}
	t.cell = cells[i]
	cells[i].trials = append(cells[i].trials, &t)
}

// Labels are what a label filter selects by: "step:5" or "contract", the
// attempt's name, "route:relay", and "half:inside", "half:host" for who says it.
func (t Trial) Labels() []string {
	out := []string{t.Attempt.Name, "route:" + t.Route}
	if t.Attempt.Step == 0 {
		out = append(out, "contract")
	} else {
		out = append(out, fmt.Sprintf("step:%d", t.Attempt.Step))
	}
	if t.By == reports.ByClaim {
		out = append(out, "half:inside")
	}
	if len(t.Wants) > 0 {
		out = append(out, "half:host")
	}
	return out
}

// Under is the trial as a run under that configuration asks it: the expected
// refusal in the words of the configured action, and every bound filled in.
func (t Trial) Under(cfg runsc.Config) Trial {
	t.Expected, t.Wants = filtered(t.Expected, cfg), granted(t.Wants, cfg, t.cell)
	return t
}

// Lifts are the walls that the trial's cell lowers.
func (t Trial) Lifts() []hostile.Lift { return slices.Clone(t.cell.Lifts) }
