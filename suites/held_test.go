package suites

import (
	"slices"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// The evidence of a trial that held, made by hand, and the ways to spoil it.

var reachedClaim = hostile.Claim{Event: hostile.Reached, Call: "the act"}

func refusedClaim(r hostile.Refusal) hostile.Claim {
	return hostile.Claim{Event: hostile.Stopped, Kind: r.Kind, Place: r.Place, Call: "the act", Note: "as its errno tells"}
}

func saw(observer string, values map[string]int64) observers.Observation {
	o := observers.Observation{Observer: observer, Place: "here", Samples: 3, Values: map[string]observers.Reading{}}
	for k, v := range values {
		o.Values[k] = observers.Reading{Worst: v, After: v}
	}
	return o
}

func controlled(observer string) observers.Control {
	return observers.Control{Observer: observer, Place: "here", Effect: "a harmless one", Want: "1", Seen: "1", Passed: true}
}

// claimEvidence is refused to a payload that lived to tell.
func claimEvidence() reports.Trial {
	return reports.Trial{
		ID: "step-01/credentials/shadow", Step: 1, Attempt: "credentials", Route: "shadow", Job: "here",
		Expected: ownership, By: reports.ByClaim, Source: source1, Wants: secretUnread(),
		Claims:       []hostile.Claim{reachedClaim, refusedClaim(ownership)},
		Ended:        &reports.Ended{Reason: "exited"},
		Observations: []observers.Observation{saw("canary", map[string]int64{"reads": 0, "unattributed": 0}), saw("secrets", map[string]int64{"found": 0})},
		Controls:     []observers.Control{controlled("canary"), controlled("secrets")},
	}
}

// runnerEvidence is ended by a cap, at 2.1 s of processor time.
func runnerEvidence() reports.Trial {
	return reports.Trial{
		ID: "step-05/processor/relay", Step: 5, Attempt: "processor", Route: "relay", Job: "here",
		Expected: endings["cpu"], By: reports.ByRunner, Source: source5, Wants: granted(processorTime(), runsc.DefaultConfig(), &Cell{}),
		Claims:       []hostile.Claim{reachedClaim},
		Ended:        &reports.Ended{Reason: "cpu", Refusal: endings["cpu"], CPUMS: 2100, WallMS: 1300},
		Observations: []observers.Observation{saw("processor", map[string]int64{"usage": 2_100_000_000}), saw("limits", map[string]int64{"inside": 3, "outside": 0})},
		Controls:     []observers.Control{controlled("processor"), controlled("limits")},
	}
}

// hostEvidence is gone, with nobody left inside to ask.
func hostEvidence() reports.Trial {
	t := reports.Trial{
		ID: "step-10/leftover/daemon", Step: 10, Attempt: "leftover", Route: "daemon", Job: "here",
		Expected: endings["cancelled"], By: reports.ByHost, Source: source10, Wants: nothingLeft(),
		Claims: []hostile.Claim{reachedClaim}, Ended: &reports.Ended{Reason: "exited"},
		Controls: []observers.Control{controlled("processes"), controlled("residue")},
	}
	t.Observations = []observers.Observation{
		saw("processes", map[string]int64{"in_cgroup": 0, "descendants": 0, "by_files": 0}),
		saw("residue", map[string]int64{"scratch": 0, "mounts": 0, "namespaces": 0, "links": 0, "cgroups": 0, "state": 0, "nft_tables": 0}),
	}
	return t
}

var heldTrials = map[string]func() reports.Trial{"claim": claimEvidence, "runner": runnerEvidence, "host": hostEvidence}

// heldAs is the evidence under which that trial of the suite holds.
func heldAs(t *Trial) reports.Trial {
	rt := t.Under(runsc.DefaultConfig()).report("here")
	rt.Ended = &reports.Ended{Reason: "exited"}
	if r, _ := t.Attempt.Route(t.Route); r.Inside {
		rt.Claims = append(rt.Claims, reachedClaim)
	}
	switch rt.By {
	case reports.ByClaim:
		rt.Claims = append(rt.Claims, refusedClaim(rt.Expected))
	case reports.ByRunner:
		rt.Ended = &reports.Ended{Refusal: rt.Expected, Reason: "exited"}
		for reason, r := range endings {
			if r == rt.Expected {
				rt.Ended.Reason = string(reason)
			}
		}
	case reports.ByHost:
		if end, ok := leftBy[t.Route]; ok {
			rt.Ended = &reports.Ended{Reason: string(end), Refusal: endings[end]}
		}
	}
	for _, w := range rt.Wants {
		set(&rt, w, satisfying(rt.Wants, w))
		if !slices.ContainsFunc(rt.Controls, func(c observers.Control) bool { return c.Observer == w.Observer }) {
			rt.Controls = append(rt.Controls, controlled(w.Observer))
		}
	}
	return rt
}

// leftBy is how the job of a leftover route has to end, where the route is that
// end.
var leftBy = map[string]runsc.Reason{
	"cpu-capped": runsc.ReasonCPU, "wall-capped": runsc.ReasonWall, "memory-capped": runsc.ReasonMemory,
	"output-capped": runsc.ReasonOutput, "cancelled": runsc.ReasonCancelled, "runner-killed": runsc.ReasonLost,
}

// satisfying is the least number that every want over the same value allows.
func satisfying(wants []reports.Want, of reports.Want) (n int64) {
	for _, w := range wants {
		if w.Observer == of.Observer && w.Value == of.Value && w.Rule != reports.AtMost {
			n = max(n, w.Bound)
		}
	}
	return n
}

// breaching is the nearest number that the want forbids.
func breaching(w reports.Want) int64 {
	if w.Rule == reports.AtLeast {
		return w.Bound - 1
	}
	return w.Bound + 1
}

// set writes a value into the observation that the want is about.
func set(t *reports.Trial, w reports.Want, n int64) {
	i := slices.IndexFunc(t.Observations, func(o observers.Observation) bool { return o.Observer == w.Observer })
	if i < 0 {
		i = len(t.Observations)
		t.Observations = append(t.Observations, saw(w.Observer, nil))
	}
	r := t.Observations[i].Values[w.Value]
	switch w.Moment {
	case reports.After:
		r.After = n
	case reports.Growth:
		r.Before, r.After = 7, 7+n
	default:
		r.Worst = n
	}
	t.Observations[i].Values[w.Value] = r
}

// expect judges the trial and compares the verdict; every verdict has a reason.
func expect(t *testing.T, what string, rt reports.Trial, want hostile.Verdict) {
	t.Helper()
	got := Judge(rt)
	if got.Verdict != want || got.Reason == "" {
		t.Errorf("%s: %s: %s (%s), want %s", rt.ID, what, got.Verdict, got.Reason, want)
	}
}

// heldEvidence is what a cell left for two routes of step 7.
func heldEvidence() *cellEvidence {
	return &cellEvidence{
		place: "outside", trouble: "t", ended: &reports.Ended{Reason: "exited"},
		claims: hostile.Claims{Foreign: 1, Noise: 2, Beyond: 3, Claims: []hostile.Claim{
			{Attempt: "outside", Route: "create", Event: hostile.Reached}, {Attempt: "outside", Route: "append", Event: hostile.Reached},
		}},
		observations: map[string]observers.Observation{"mounts": saw("mounts", map[string]int64{"root_writable": 0})},
	}
}
