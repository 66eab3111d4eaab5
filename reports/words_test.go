package reports

import (
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
)

func zero(observer, value string) Want {
	return Want{Observer: observer, Value: value, Moment: Worst, Rule: Exactly, Unit: "count", Breach: hostile.Fell}
}

func saw(observer string, values map[string]int64, found ...string) observers.Observation {
	o := observers.Observation{Observer: observer, Samples: 1, Values: map[string]observers.Reading{}, Found: found}
	for name, n := range values {
		o.Values[name] = observers.Reading{Worst: n, After: n, Unit: "count"}
	}
	return o
}

func TestWhatTheHostSaw(t *testing.T) {
	walked := "process 7 of the job: 1 opens, 0 reads of /canary"
	canary := []Want{zero("canary", "reads"), zero("secrets", "found")}
	memory := hostile.Refusal{Kind: hostile.MemoryCap, Place: hostile.JobMemoryCgroup}
	for name, tc := range map[string]struct {
		trial Trial
		want  string
	}{
		"what is beside the wants is left out": {
			Trial{Wants: canary, Observations: []observers.Observation{saw("canary", map[string]int64{"opens": 1, "reads": 0}, walked), saw("secrets", map[string]int64{"found": 0})}},
			"canary: reads 0; secrets: found 0",
		},
		"what is behind an unmet want is told": {
			Trial{Wants: canary, Observations: []observers.Observation{saw("canary", map[string]int64{"reads": 2}, walked), saw("secrets", map[string]int64{"found": 0})}},
			"canary: reads 2, found " + walked + "; secrets: found 0",
		},
		"what nobody asked of is told": {
			Trial{Wants: canary[1:], Observations: []observers.Observation{saw("canary", nil, walked), saw("secrets", map[string]int64{"found": 0})}},
			"canary: found " + walked + "; secrets: found 0",
		},
		"lost": {
			Trial{Wants: canary[:1], Observations: []observers.Observation{{Observer: "canary", Lost: "no fanotify"}}},
			"canary: lost its window: no fanotify",
		},
		"never read":    {Trial{Wants: canary[:1]}, "canary: read no reads"},
		"its own name":  {Trial{Wants: []Want{zero("routes", "routes")}, Observations: []observers.Observation{saw("routes", map[string]int64{"routes": 0})}}, "routes: 0"},
		"blind control": {Trial{Wants: canary[:1], Controls: []observers.Control{{Observer: "canary"}}, Observations: []observers.Observation{saw("canary", map[string]int64{"reads": 0})}}, "canary: failed its control, reads 0"},
		"a reading that meets one want and not the other is told once": {
			Trial{Wants: []Want{
				{Observer: "processor", Value: "usage", Rule: AtMost, Bound: 9, Moment: After}, {Observer: "processor", Value: "usage", Rule: AtLeast, Bound: 8, Moment: After},
			}, Observations: []observers.Observation{saw("processor", map[string]int64{"usage": 7})}},
			"processor: usage 7",
		},
		"ended by a cap":                {Trial{By: ByRunner, Ended: &Ended{Reason: "memory", Refusal: memory}}, "ended by memory cap at the job memory cgroup"},
		"ended by itself":               {Trial{By: ByRunner, Ended: &Ended{Reason: "exited", Refusal: hostile.Refusal{Kind: hostile.InForce, Place: hostile.ArtifactBound}}}, "ended by itself"},
		"ended without a word":          {Trial{By: ByRunner, Ended: &Ended{Reason: "lost"}}, "ended as lost"},
		"a place inside":                {Trial{By: ByClaim}, "nothing: the place is inside"},
		"a place inside, and not asked": {Trial{By: ByClaim, Trouble: "no runtime"}, "nothing recorded"},
		"wanted by the host alone":      {Trial{By: ByHost}, "nothing recorded"},
	} {
		if got := hostSaw(&tc.trial); got != tc.want {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, tc.want)
		}
	}
}

func TestWhatWasSaidInside(t *testing.T) {
	for want, trial := range map[string]Trial{
		"(the host's word alone)":                {By: ByHost},
		"nothing":                                {By: ByClaim},
		"reached, then nothing":                  {By: ByClaim, Claim: &hostile.Claim{Event: hostile.Reached}},
		"reached":                                {By: ByHost, Claim: &hostile.Claim{Event: hostile.Reached}},
		"reached, last count 234881024":          {By: ByRunner, Claim: &hostile.Claim{Event: hostile.Progress, Count: 234881024}},
		"read: uid 65534":                        {By: ByClaim, Claim: &hostile.Claim{Event: hostile.Reading, Note: "uid 65534"}},
		"EACCES at the file ownership":           {By: ByClaim, Claim: &hostile.Claim{Event: hostile.Stopped, Kind: hostile.EACCES, Place: hostile.FileOwnership}},
		"it happened: \\x1b[2J":                  {By: ByClaim, Claim: &hostile.Claim{Event: hostile.Happened, Note: "\x1b[2J"}},
		"nothing of this run (2 foreign claims)": {By: ByClaim, Said: Said{Foreign: 2}},
	} {
		if got := insideSaid(&trial); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Readings are exact, so that one page beyond a limit shows.
func TestReadings(t *testing.T) {
	for want, r := range map[string]struct {
		value, unit string
		n           int64
	}{
		"cpu 2.003 s":          {"cpu", "ns", 2_003_000_000},
		"peak 256 MiB":         {"peak", "bytes", 256 << 20},
		"peak 256 MiB 4 KiB":   {"peak", "bytes", 256<<20 + 4096},
		"peak 268435457 bytes": {"peak", "bytes", 256<<20 + 1},
		"held 20 KiB":          {"held", "bytes", 20480},
		"swap 0 bytes":         {"swap", "bytes", 0},
		"drop -4096 bytes":     {"drop", "bytes", -4096},
		"0 packets":            {"packets", "packets", 0},
		"tx_packets 3":         {"tx_packets", "packets", 3},
		"in_cgroup 1":          {"in_cgroup", "processes", 1},
		"own 1":                {"own", "count", 1},
		"depth 2 metres":       {"depth", "metres", 2},
	} {
		if got := reading(r.value, r.n, r.unit); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
