package reports

import (
	"fmt"
	"strings"

	"tenwalls.dev/harness/hostile"
)

func (c *comparison) outcome() {
	c.change(Verdicts, "outcome", "outcome", string(c.a.Outcome), string(c.b.Outcome), "")
	c.change(Verdicts, "complete", "asked", asked(c.a), asked(c.b), "")
	c.change(Verdicts, "interrupted", "interrupted", c.a.Interrupted, c.b.Interrupted, "")
}

func asked(r *Report) string {
	if r.Complete {
		return "every trial"
	}
	return "a selection"
}

func (c *comparison) verdict(p pair) {
	more := ""
	if p.b.Verdict != hostile.Held {
		more = ": " + p.b.Reason
	}
	c.change(Verdicts, p.b.ID, p.name(), string(p.a.Verdict), string(p.b.Verdict), more)
}

func (p pair) name() string { return p.b.label() + ": " + p.b.Route }

// unpaired tells, an attempt at a time, of trials that only one run asked.
func (c *comparison) unpaired() {
	only := func(r, other *Report, before, after string) {
		there := map[string]bool{}
		for _, t := range other.Trials {
			there[t.ID] = true
		}
		for _, g := range grouped(r) {
			var routes []string
			for _, t := range g.trials {
				if !there[t.ID] {
					routes = append(routes, t.Route)
				}
			}
			if len(routes) > 0 {
				c.change(Verdicts, g.attempt, g.trials[0].label()+": "+strings.Join(routes, ", "), before, after, "")
			}
		}
	}
	only(c.a, c.b, "asked", "not asked")
	only(c.b, c.a, "not asked", "asked")
}

// refusal compares what was written down, and for a trial that was misnamed
// both times, what refused it instead.
func (c *comparison) refusal(p pair) {
	c.change(Refusals, p.b.ID, p.name()+": expected", p.a.Expected.String(), p.b.Expected.String(), "")
	c.change(Refusals, p.b.ID, p.name()+": told by", string(p.a.By), string(p.b.By), "")
	c.change(Refusals, p.b.ID, p.name()+": lifted", lifts(p.a), lifts(p.b), "")
	if p.a.Verdict == hostile.Misnamed && p.b.Verdict == hostile.Misnamed {
		c.change(Refusals, p.b.ID, p.name()+": misnamed both times, refused by", refusedBy(p.a), refusedBy(p.b), "")
	}
}

// refusedBy is the refusal that came, as far as it was named.
func refusedBy(t *Trial) string {
	switch {
	case t.By == ByRunner && t.Ended != nil:
		return t.Ended.Refusal.String()
	case t.Claim != nil && t.Claim.Event == hostile.Stopped:
		return hostile.Refusal{Kind: t.Claim.Kind, Place: t.Claim.Place}.String()
	}
	return "unknown"
}

// timings tells of durations that are others beyond the factor. The routes that
// share a job share its duration, and stand together.
func (c *comparison) timings(both []pair) {
	if another(c.a.DurationMS, c.b.DurationMS) {
		c.change(Timings, "run", "the run", took(c.a.DurationMS), took(c.b.DurationMS), "")
	}
	type shared struct {
		label         string
		before, after int64
	}
	var order []shared
	routes, ids := map[shared][]string{}, map[shared]string{}
	for _, p := range both {
		s := shared{p.b.label(), p.a.DurationMS, p.b.DurationMS}
		if !another(s.before, s.after) {
			continue
		}
		if routes[s] == nil {
			order, ids[s] = append(order, s), p.b.ID
		}
		routes[s] = append(routes[s], p.b.Route)
	}
	for _, s := range order {
		c.change(Timings, ids[s], s.label+": "+strings.Join(routes[s], ", "), took(s.before), took(s.after), "")
	}
}

// another tells whether one of two durations, in milliseconds, is another beyond
// the factor.
func another(a, b int64) bool {
	low, high := min(a, b), max(a, b)
	return high >= TimingFactor*low && high-low >= TimingLeast.Milliseconds()
}

func took(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }
