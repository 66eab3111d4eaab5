package reports

import (
	"cmp"
	"slices"

	"tenwalls.dev/harness/hostile"
)

// group is the trials of one attempt.
type group struct {
	step    int
	attempt string
	trials  []*Trial
}

// grouped returns the trials in the one order that every form of the report
// keeps, however the run was scheduled: steps 1 to 10, then the contract
// checks by name; within an attempt the catalogue's routes, then routes that the
// catalogue does not know by name; trials of one route by id.
func grouped(r *Report) []group {
	all := make([]*Trial, len(r.Trials))
	for i := range r.Trials {
		all[i] = &r.Trials[i]
	}
	places := map[string]int{}
	for _, a := range hostile.Catalogue() {
		for i, route := range a.Routes {
			places[a.Name+"/"+route.Name] = i + 1
		}
	}
	place := func(t *Trial) int {
		return cmp.Or(places[t.Attempt+"/"+t.Route], len(places)+1)
	}
	slices.SortStableFunc(all, func(a, b *Trial) int {
		return cmp.Or(
			cmp.Compare(cmp.Or(a.Step, 11), cmp.Or(b.Step, 11)),
			cmp.Compare(a.Attempt, b.Attempt),
			cmp.Compare(place(a), place(b)),
			cmp.Compare(a.Route, b.Route),
			cmp.Compare(a.ID, b.ID),
		)
	})
	var out []group
	for _, t := range all {
		last := len(out) - 1
		if last < 0 || out[last].step != t.Step || out[last].attempt != t.Attempt {
			out = append(out, group{step: t.Step, attempt: t.Attempt})
			last++
		}
		out[last].trials = append(out[last].trials, t)
	}
	return out
}

// governing returns the trial that speaks for the attempt: the first with the
// worst verdict, which is the principal route when all held; and how many of
// the trials share its verdict.
func (g group) governing() (worst *Trial, same int) {
	for _, t := range g.trials {
		switch {
		case worst == nil || badness(t.Verdict) > badness(worst.Verdict):
			worst, same = t, 1
		case t.Verdict == worst.Verdict:
			same++
		}
	}
	return worst, same
}
