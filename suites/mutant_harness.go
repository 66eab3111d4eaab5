package suites

import (
	"cmp"
	"context"
	"slices"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// The mutants of the harness itself: what has to be noticed is that nothing was
// shown.

const listedHarness = "mutants of the harness itself: a payload that does not act or lies, each observer blinded, each control removed, empty evidence"

// deceived is every trial of the cells in which the payload has to say
// something, turned silent; and what a cap leaves behind, where no cap is reached.
func deceived(cells []string, idle bool) []Prediction {
	var out []Prediction
	for _, t := range Trials() {
		r, _ := t.Attempt.Route(t.Route)
		_, left := leftBehind[t.Route]
		if slices.Contains(cells, t.cell.Name) && (r.Inside || left && idle) {
			out = append(out, turns(hostile.Silent, t.ID(), "unsaid"))
		}
	}
	return out
}

var everyCell = append(slices.Clone(row), "disk-stdout", "disk-stderr", "disk-artifact", "memory-memfd", "processor-limit-behind")

var (
	_ = mutate(Mutant{
		Name: "payload-idle", Title: "the payload is replaced by true(1)", Part: reports.PartPayload, Source: listedHarness,
		Cells: everyCell, Order: map[string]string{hostile.ParamDeceit: string(hostile.DeceitIdle)},
		Foretell: func() []Prediction { return deceived(everyCell, true) },
	})
	_ = mutate(Mutant{
		Name: "payload-unreached", Title: "the payload claims each refusal and never reaches the act", Part: reports.PartPayload, Source: listedHarness,
		Cells: everyCell, Order: map[string]string{hostile.ParamDeceit: string(hostile.DeceitUnreached)},
		Foretell: func() []Prediction { return deceived(everyCell, true) },
	})
	_ = mutate(Mutant{
		Name: "payload-nameless", Title: "the payload's claims are without this run's nonce", Part: reports.PartPayload, Source: listedHarness,
		Cells: everyCell, Order: map[string]string{hostile.ParamDeceit: string(hostile.DeceitNameless)},
		Foretell: func() []Prediction { return deceived(everyCell, false) },
	})
	_ = mutate(Mutant{
		Name: "evidence-empty", Title: "the judge is fed an empty evidence", Part: reports.PartJudge, Source: listedHarness,
		Forget: func(t *reports.Trial) { t.Claims, t.Ended, t.Observations, t.Controls = nil, nil, nil, nil },
		Predicted: []Prediction{
			turns(hostile.Silent, "step-*/*/*", "unsaid"),
			turns(hostile.Silent, "contract/*/*", "unsaid"),
		},
	})
)

// lie is the mutant whose wall is down and whose payload claims the expected
// refusal all the same: the host alone has to notice.
func lie(of, cell, trials string, basis ...string) Mutant {
	i := slices.IndexFunc(mutants, func(m *Mutant) bool { return m.Name == of })
	m := *mutants[i]
	m.Name, m.Title, m.Part, m.Source = "lie-"+of, m.Title+", and the payload claims the expected refusal", reports.PartPayload, listedHarness
	m.Cells, m.Also = []string{cell}, nil
	m.Order = map[string]string{hostile.ParamDeceit: string(hostile.DeceitLie)}
	m.Predicted = []Prediction{{Trials: trials, Verdict: hostile.Fell, Basis: basis, Without: []string{"inside"}}}
	m.Foretell = nil
	return m
}

// blinded is the mutant of one observer: it looks where nothing is.
func blinded(observer string, cells ...string) Mutant {
	return Mutant{
		Name: "blind-" + observer, Title: "the observer " + observer + " looks where nothing is", Part: reports.PartObserver, Source: listedHarness,
		Cells: cells, Blind: observer, Eyes: blindfolds[observer],
		Foretell: func() []Prediction { return watched(observer, cells, blindBasis[observer]) },
	}
}

// blindBasis says how it shows where it does not in the control.
var blindBasis = map[string]string{"output": "lost: output"}

// blindfolds are for the observers that look at no file system of the kernel.
var blindfolds = map[string]func(*Scene, *eyes) error{
	"link": func(s *Scene, e *eyes) error {
		v4, _ := s.Destination("control")
		o, err := observers.NewLink(&observers.Wire{
			Name: "place", Place: s.world.PlacePath(), Link: "lo", World: s.world.WorldPath(), Peer: s.world.WorldLink(),
		}, v4)
		if err != nil {
			return err
		}
		e.all["link"], e.closers = o, append(e.closers, func() error { o.Close(); return nil })
		return nil
	},
	"trees": func(s *Scene, e *eyes) error { return e.trees.Before(context.Background(), []string{s.void()}) },
	"listing": func(s *Scene, e *eyes) error {
		o := newListing(s)
		o.list = func(context.Context, string, string) ([]int, error) { return nil, nil }
		e.all["listing"] = o
		return nil
	},
	"output": func(_ *Scene, e *eyes) error {
		e.all["output"] = outputObserver{newCounts()}
		return nil
	},
	"census": func(_ *Scene, e *eyes) error {
		e.all["census"] = newCensus(&runsc.Filter{Allow: []string{"no such call"}})
		return nil
	},
}

// uncontrolledBy is the mutant of one control: it is not made.
func uncontrolledBy(observer string, cells ...string) Mutant {
	return Mutant{
		Name: "uncontrolled-" + observer, Title: "the control of the observer " + observer + " is not made", Part: reports.PartControl, Source: listedHarness,
		Cells: cells, Foretell: func() []Prediction { return watched(observer, cells, "") },
		Control: func(name string, c observers.Control) (observers.Control, bool) { return c, name != observer },
	}
}

// watched is every trial of the cells that wants something of the observer.
func watched(observer string, cells []string, basis string) []Prediction {
	basis = cmp.Or(basis, "control: "+observer)
	var out []Prediction
	for _, t := range Trials() {
		if slices.Contains(cells, t.cell.Name) && slices.ContainsFunc(t.Wants, func(w reports.Want) bool { return w.Observer == observer }) {
			out = append(out, turns(hostile.Blind, t.ID(), basis))
		}
	}
	return out
}

// watchers are the observers, each with the cells that it is tried over.
var watchers = []struct {
	observer string
	cells    []string
}{
	{"canary", []string{"credentials"}},
	{"secrets", []string{"credentials", "neighbour-walk"}},
	{"egress", []string{"metadata"}},
	{"link", []string{"connection"}},
	{"routes", []string{"metadata"}},
	{"space", []string{"disk-artifact"}},
	{"output", []string{"output", "artifacts-honest"}},
	{"tasks", []string{"processes"}},
	{"listing", []string{"processes"}},
	{"processor", []string{"processor-threads"}},
	{"memory", []string{"memory-anonymous"}},
	{"oom", []string{"memory-anonymous"}},
	{"bystander", []string{"memory-anonymous"}},
	{"limits", []string{"outside", "processes"}},
	{"boot", []string{"outside"}},
	{"mounts", []string{"outside", "neighbour-walk"}},
	{"namespaces", []string{"outside"}},
	{"trees", []string{"outside"}},
	{"processes", []string{"leftover"}},
	{"residue", []string{"leftover"}},
	{"census", []string{"census"}},
}

func init() {
	for _, m := range []Mutant{
		lie("canary-world-readable", "credentials", "step-01/credentials/*", "host: canary reads"),
		lie("filter-unloaded-and-route", "connection", "step-02/connection/*", "host: egress packets"),
		lie("scratch-host-folder", "disk", "step-03/disk/*", "host: space scratch"),
		lie("output-unbounded", "output", "contract/output/*", "host: output kept"),
		lie("processes-unlimited", "processes", "step-04/processes/*", "host: listing processes"),
		lie("memory-unlimited", "memory-anonymous", "step-06/memory/*", "host: memory peak"),
		lie("root-writable", "outside", "step-07/outside/*", "host: trees changed"),
		lie("neighbour-mounted-0644", "neighbour-walk", "step-08/neighbour/*", "host: mounts foreign_mounts"),
		lie("metadata-route", "metadata", "step-09/metadata/*", "host: egress packets"),
	} {
		if m.Of == hostile.Memory { // no cap of memory ended it
			m.Predicted = append(m.Predicted, turns(hostile.Silent, "step-10/leftover/memory-capped", "unsaid"))
		}
		mutate(m)
	}
	for _, w := range watchers {
		if w.observer == "egress" { // counter-not-installed is it
			mutate(uncontrolledBy(w.observer, w.cells...))
			continue
		}
		mutate(blinded(w.observer, w.cells...))
		mutate(uncontrolledBy(w.observer, w.cells...))
	}
}
