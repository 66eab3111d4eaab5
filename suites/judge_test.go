package suites

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
)

func TestJudgeHoldsAndSaysWhy(t *testing.T) {
	for by, held := range heldTrials {
		got := Judge(held())
		if got.Verdict != hostile.Held {
			t.Errorf("%s: %s: %s", by, got.Verdict, got.Reason)
		}
		for _, w := range got.Wants {
			if !strings.Contains(got.Reason, w.Observer) {
				t.Errorf("%s: the reason does not name observer %s: %s", by, w.Observer, got.Reason)
			}
		}
		if !strings.Contains(got.Reason, got.Expected.String()) {
			t.Errorf("%s: the reason does not name the refusal: %s", by, got.Reason)
		}
	}
	// Where the place is inside, no host observation exists.
	rt := claimEvidence()
	rt.Wants, rt.Observations, rt.Controls = nil, nil, nil
	expect(t, "no wants", rt, hostile.Held)
}

// A host that is too busy to give a job its processor time puts no cap to the
// test; one with idle time left does, and then another wall was there first.
func TestJudgeABusyHost(t *testing.T) {
	starved := func(change ...func(*reports.Trial)) reports.Trial {
		rt := runnerEvidence()
		rt.Ended = &reports.Ended{Reason: "wall", Refusal: endings["wall"], CPUMS: 1500, WallMS: 10000}
		rt.Observations[0] = saw("processor", map[string]int64{"usage": 1_500_000_000, "idle": 480_000_000})
		for _, c := range change {
			c(&rt)
		}
		return rt
	}
	expect(t, "busy", starved(), hostile.Broken)
	if why := Judge(starved()).Reason; !strings.Contains(why, "too busy: the job got 1500 ms of the 2000 ms") || !strings.Contains(why, "idle for 480 ms") {
		t.Error(why)
	}
	for name, change := range map[string]func(*reports.Trial){
		"idle time left": func(rt *reports.Trial) {
			rt.Observations[0] = saw("processor", map[string]int64{"usage": 1_500_000_000, "idle": 500_000_000})
		},
		"idle time unknown": func(rt *reports.Trial) {
			rt.Observations[0] = saw("processor", map[string]int64{"usage": 1_500_000_000})
		},
		"the cap was reached": func(rt *reports.Trial) {
			rt.Observations[0] = saw("processor", map[string]int64{"usage": 2_000_000_000, "idle": 0})
		},
		"another end": func(rt *reports.Trial) { rt.Ended.Reason, rt.Ended.Refusal = "memory", endings["memory"] },
	} {
		expect(t, name, starved(change), hostile.Misnamed)
	}
	expect(t, "beyond the cap", starved(func(rt *reports.Trial) {
		rt.Observations[0] = saw("processor", map[string]int64{"usage": 9_000_000_000, "idle": 0})
	}), hostile.Fell)
	expect(t, "unreached", starved(func(rt *reports.Trial) { rt.Claims = nil }), hostile.Silent)
}

// Each single change to the evidence of a held trial, with the predicted
// verdict and what its reason has to say.
func TestJudgeOneChange(t *testing.T) {
	absent := hostile.Refusal{Kind: hostile.ENOENT, Place: hostile.FileOwnership}
	elsewhere := hostile.Refusal{Kind: hostile.EACCES, Place: hostile.Unknown}
	happened := hostile.Claim{Event: hostile.Happened, Call: "the act", Count: 31, Note: "the canary was read"}
	failed := hostile.Claim{Event: hostile.Failed, Note: "no such file to try"}
	for _, tt := range []struct {
		by, name string
		change   func(*reports.Trial)
		want     hostile.Verdict
		says     string
	}{
		{"claim", "no claims", func(t *reports.Trial) { t.Claims = nil }, hostile.Silent, "never said that it reached"},
		{"claim", "foreign claims alone", func(t *reports.Trial) { t.Claims, t.Said.Foreign = nil, 2 }, hostile.Silent, "2 claims of another run"},
		{"claim", "noise alone", func(t *reports.Trial) { t.Claims, t.Said.Noise = nil, 9 }, hostile.Silent, "9 lines that are no claim"},
		{"claim", "reached and no more", func(t *reports.Trial) { t.Claims = t.Claims[:1] }, hostile.Silent, "reached the act and said nothing of what came back"},
		{"claim", "refused and never reached", func(t *reports.Trial) { t.Claims = t.Claims[1:] }, hostile.Silent, "never said that it reached"},
		{"claim", "a second act without an answer", func(t *reports.Trial) { t.Claims = append(t.Claims, reachedClaim) }, hostile.Silent, "the 2. it named"},
		{"claim", "progress is no answer", func(t *reports.Trial) { t.Claims[1] = hostile.Claim{Event: hostile.Progress, Count: 5} }, hostile.Silent, "said nothing of what came back"},
		{"claim", "a reading is no answer", func(t *reports.Trial) { t.Claims[1] = hostile.Claim{Event: hostile.Reading, Note: "uid 65534"} }, hostile.Silent, "said nothing of what came back"},
		{"claim", "failed", func(t *reports.Trial) { t.Claims = []hostile.Claim{failed} }, hostile.Silent, "no such file to try"},
		{"claim", "reached, then failed", func(t *reports.Trial) { t.Claims[1] = failed }, hostile.Silent, "could not make the attempt"},
		{"claim", "one act failed beside one refused", func(t *reports.Trial) { t.Claims = append([]hostile.Claim{failed}, t.Claims...) }, hostile.Silent, "no such file to try"},
		{"claim", "claims beyond the bound", func(t *reports.Trial) { t.Said.Beyond = 1 }, hostile.Silent, "beyond the bound"},
		{"claim", "no record of the end", func(t *reports.Trial) { t.Ended = nil }, hostile.Silent, "no record of its end"},
		{"claim", "another kind", func(t *reports.Trial) { t.Claims[1] = refusedClaim(absent) }, hostile.Misnamed, "ENOENT"},
		{"claim", "another kind, never reached", func(t *reports.Trial) { t.Claims = []hostile.Claim{refusedClaim(absent)} }, hostile.Misnamed, "ENOENT"},
		{"claim", "another place", func(t *reports.Trial) { t.Claims[1] = refusedClaim(elsewhere) }, hostile.Misnamed, "unknown"},
		{"claim", "another kind beside the expected one", func(t *reports.Trial) { t.Claims = append(t.Claims, refusedClaim(absent)) }, hostile.Misnamed, "ENOENT"},
		{"claim", "another kind before the expected one", func(t *reports.Trial) { t.Claims = slices.Insert(t.Claims, 1, refusedClaim(absent)) }, hostile.Misnamed, "ENOENT"},
		{"claim", "ended by a cap in the act", func(t *reports.Trial) {
			t.Claims, t.Ended = t.Claims[:1], &reports.Ended{Reason: "wall", Refusal: endings["wall"], WallMS: 10_000}
		}, hostile.Misnamed, "wall cap"},
		{"claim", "ended by a cap before the act", func(t *reports.Trial) {
			t.Claims, t.Ended = nil, &reports.Ended{Reason: "wall", Refusal: endings["wall"], WallMS: 10_000}
		}, hostile.Silent, "never said that it reached"},
		{"claim", "exited in the act, with what is in force", func(t *reports.Trial) {
			t.Claims = t.Claims[:1]
			t.Ended.Refusal = hostile.Refusal{Kind: hostile.InForce, Place: hostile.ArtifactBound}
		}, hostile.Silent, "reached the act and said nothing"},
		{"claim", "ended by a cap after the answer", func(t *reports.Trial) {
			t.Ended = &reports.Ended{Reason: "wall", Refusal: endings["wall"]}
		}, hostile.Held, ""},
		{"claim", "it happened", func(t *reports.Trial) { t.Claims[1] = happened }, hostile.Fell, "the canary was read"},
		{"claim", "it happened beside a refusal", func(t *reports.Trial) { t.Claims = append(t.Claims, happened) }, hostile.Fell, "the canary was read"},
		{"claim", "it happened, then was refused", func(t *reports.Trial) { t.Claims = slices.Insert(t.Claims, 1, happened) }, hostile.Fell, "the canary was read"},
		{"claim", "it happened beside another refusal", func(t *reports.Trial) { t.Claims = []hostile.Claim{refusedClaim(absent), happened} }, hostile.Fell, "it happened"},
		{"claim", "the host saw it", func(t *reports.Trial) { set(t, t.Wants[0], 1) }, hostile.Fell, "seen 1"},
		{"claim", "the host saw it and says what", func(t *reports.Trial) {
			set(t, t.Wants[0], 1)
			t.Observations[0].Found = []string{"runsc-gofer read /etc/shadow"}
		}, hostile.Fell, "runsc-gofer read /etc/shadow"},
		{"claim", "a blind observer saw it all the same", func(t *reports.Trial) {
			set(t, t.Wants[0], 1)
			t.Controls[0].Passed, t.Observations[0].Lost = false, "the queue overflowed"
		}, hostile.Fell, "seen 1"},
		{"claim", "no such route", func(t *reports.Trial) { t.Route = "no-such" }, hostile.Broken, "no such route"},
		{"claim", "no such attempt", func(t *reports.Trial) { t.Attempt = "no-such" }, hostile.Broken, "no such route"},

		{"runner", "no claims", func(t *reports.Trial) { t.Claims = nil }, hostile.Silent, "never said that it reached"},
		{"runner", "no record of the end", func(t *reports.Trial) { t.Ended = nil }, hostile.Silent, "no record of its end"},
		{"runner", "failed", func(t *reports.Trial) { t.Claims = append(t.Claims, failed) }, hostile.Silent, "could not make the attempt"},
		{"runner", "claims beyond the bound", func(t *reports.Trial) { t.Said.Beyond = 3 }, hostile.Silent, "3 claims"},
		{"runner", "ended by another cap", func(t *reports.Trial) {
			t.Ended = &reports.Ended{Reason: "wall", Refusal: endings["wall"], WallMS: 10_000}
		}, hostile.Misnamed, "wall cap"},
		{"runner", "exited by itself", func(t *reports.Trial) { t.Ended = &reports.Ended{Reason: "exited", ExitCode: 137} }, hostile.Misnamed, "with 137"},
		{"runner", "ended by another cap before it reached the act", func(t *reports.Trial) {
			t.Claims, t.Ended = nil, &reports.Ended{Reason: "wall", Refusal: endings["wall"]}
		}, hostile.Silent, "never said that it reached"},
		{"runner", "it happened", func(t *reports.Trial) { t.Claims = append(t.Claims, happened) }, hostile.Fell, "it happened"},
		{"runner", "beyond the cap", func(t *reports.Trial) { set(t, t.Wants[0], 2_250_000_001) }, hostile.Fell, "seen 2250000001"},
		{"runner", "at the tolerance", func(t *reports.Trial) { set(t, t.Wants[0], 2_250_000_000) }, hostile.Held, ""},
		{"runner", "not at the cap", func(t *reports.Trial) { set(t, t.Wants[0], 1_999_999_999) }, hostile.Misnamed, "seen 1999999999"},
		{"runner", "no wants", func(t *reports.Trial) { t.Wants = nil }, hostile.Blind, "no observer was asked"},

		{"host", "no claims", func(t *reports.Trial) { t.Claims = nil }, hostile.Silent, "never said that it reached"},
		{"host", "no record of the end", func(t *reports.Trial) { t.Ended = nil }, hostile.Silent, "no record of its end"},
		{"host", "failed", func(t *reports.Trial) { t.Claims[0] = failed }, hostile.Silent, "could not make the attempt"},
		{"host", "it happened", func(t *reports.Trial) { t.Claims = append(t.Claims, happened) }, hostile.Fell, "it happened"},
		{"host", "one process is left", func(t *reports.Trial) { set(t, t.Wants[0], 1) }, hostile.Fell, "seen 1"},
		{"host", "one cgroup is left", func(t *reports.Trial) { set(t, t.Wants[7], 1) }, hostile.Fell, "no cgroup left"},
		{"host", "no wants", func(t *reports.Trial) { t.Wants = nil }, hostile.Blind, "no observer was asked"},
		{"host", "nobody inside to ask", func(t *reports.Trial) { t.Attempt, t.Route, t.Claims = "namespaces", "own-five", nil }, hostile.Held, ""},
	} {
		t.Run(tt.by+" "+tt.name, func(t *testing.T) {
			rt := heldTrials[tt.by]()
			tt.change(&rt)
			got := Judge(rt)
			if got.Verdict != tt.want || !strings.Contains(got.Reason, tt.says) {
				t.Errorf("%s: %s; want %s with %q", got.Verdict, got.Reason, tt.want, tt.says)
			}
		})
	}
}

// What stands before the verdict of any evidence: whether it was asked at all.
func TestJudgeUnasked(t *testing.T) {
	expect(t, "nothing", reports.Trial{}, hostile.Broken)
	for by, held := range heldTrials {
		for name, change := range map[string]func(*reports.Trial){
			"trouble":                 func(t *reports.Trial) { t.Trouble = "the runtime did not start" },
			"trouble and no evidence": func(t *reports.Trial) { t.Trouble, t.Claims, t.Ended, t.Observations = "interrupted", nil, nil, nil },
			"trouble and blindness":   func(t *reports.Trial) { t.Trouble, t.Controls = "interrupted", nil },
			"no expectation":          func(t *reports.Trial) { t.Expected = hostile.Refusal{} },
			"no authority":            func(t *reports.Trial) { t.By = "" },
			"an unknown authority":    func(t *reports.Trial) { t.By = "nobody" },
		} {
			rt := held()
			change(&rt)
			expect(t, by+": "+name, rt, hostile.Broken)
		}
		rt := held()
		rt.Trouble = "the runtime did not start"
		if got := Judge(rt); !strings.Contains(got.Reason, rt.Trouble) {
			t.Errorf("the reason hides the trouble: %s", got.Reason)
		}
	}
}

// Two faults at once: the worse word is said.
func TestJudgePrecedence(t *testing.T) {
	fell := func(t *reports.Trial) { set(t, t.Wants[0], breaching(t.Wants[0])) }
	misnamed := func(t *reports.Trial) {
		t.Claims = append(t.Claims, refusedClaim(hostile.Refusal{Kind: hostile.ENOENT, Place: hostile.Unknown}))
		t.Ended = &reports.Ended{Reason: "wall", Refusal: endings["wall"]}
	}
	silent := func(t *reports.Trial) { t.Said.Beyond = 1 }
	blind := func(t *reports.Trial) { t.Controls[0].Passed = false }
	for _, by := range []string{"claim", "runner"} {
		for name, tt := range map[string]struct {
			changes []func(*reports.Trial)
			want    hostile.Verdict
		}{
			"all":                        {[]func(*reports.Trial){fell, misnamed, silent, blind}, hostile.Fell},
			"misnamed, silent and blind": {[]func(*reports.Trial){misnamed, silent, blind}, hostile.Misnamed},
			"silent and blind":           {[]func(*reports.Trial){silent, blind}, hostile.Silent},
			"blind":                      {[]func(*reports.Trial){blind}, hostile.Blind},
		} {
			rt := heldTrials[by]()
			for _, change := range tt.changes {
				change(&rt)
			}
			expect(t, name, rt, tt.want)
		}
	}
}

// Whatever was claimed, the claim that is shown is the one that decided.
func TestJudgeShowsTheDecidingClaim(t *testing.T) {
	other := refusedClaim(hostile.Refusal{Kind: hostile.ENOENT, Place: hostile.Unknown})
	happened, failed := hostile.Claim{Event: hostile.Happened}, hostile.Claim{Event: hostile.Failed}
	expected, progress := refusedClaim(ownership), hostile.Claim{Event: hostile.Progress, Count: 2}
	for name, tt := range map[string]struct {
		claims []hostile.Claim
		want   *hostile.Claim
	}{
		"none":              {nil, nil},
		"the last word":     {[]hostile.Claim{reachedClaim, progress}, &progress},
		"failed":            {[]hostile.Claim{failed, progress}, &failed},
		"the refusal":       {[]hostile.Claim{reachedClaim, expected, progress}, &expected},
		"the other refusal": {[]hostile.Claim{reachedClaim, expected, other, expected}, &other},
		"what happened":     {[]hostile.Claim{happened, other, expected, failed}, &happened},
	} {
		rt := claimEvidence()
		rt.Claims = tt.claims
		got := Judge(rt).Claim
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestJudgeWantsOfEveryBreach(t *testing.T) {
	for _, v := range []hostile.Verdict{hostile.Fell, hostile.Misnamed, hostile.Blind} {
		rt := claimEvidence()
		rt.Wants = slices.Clone(rt.Wants)
		rt.Wants[1].Breach = v
		expect(t, "met", rt, hostile.Held)
		set(&rt, rt.Wants[1], 1)
		expect(t, "breached", rt, v)
		if got := Judge(rt).Reason; !strings.Contains(got, "the host saw otherwise") || !strings.Contains(got, "seen 1") {
			t.Errorf("%s: the reason hides what was seen: %s", v, got)
		}
	}
	// A want whose breach has no verdict of its own is a want all the same.
	for _, v := range []hostile.Verdict{"", hostile.Held, hostile.Silent, hostile.Broken, "harmless"} {
		rt := claimEvidence()
		rt.Wants = slices.Clone(rt.Wants)
		rt.Wants[0].Breach = v
		set(&rt, rt.Wants[0], 1)
		if got := Judge(rt); got.Verdict == hostile.Held {
			t.Errorf("held in spite of a breach that is to be %q: %s", v, got.Reason)
		}
	}
}

func TestObeys(t *testing.T) {
	r := observers.Reading{Before: 3, Worst: 9, After: 5}
	for _, tt := range []struct {
		moment reports.Moment
		rule   reports.Rule
		bound  int64
		want   bool
	}{
		{reports.Worst, reports.AtMost, 9, true}, {reports.Worst, reports.AtMost, 8, false},
		{reports.Worst, reports.AtLeast, 9, true}, {reports.Worst, reports.AtLeast, 10, false},
		{reports.Worst, reports.Exactly, 9, true}, {reports.Worst, reports.Exactly, 5, false},
		{reports.After, reports.Exactly, 5, true}, {reports.After, reports.Exactly, 9, false},
		{reports.Growth, reports.Exactly, 2, true}, {reports.Growth, reports.AtMost, 1, false},
		{reports.Worst, "", 9, false}, {reports.Worst, "nearly", 9, false}, {reports.After, "AT MOST", 9, false},
		// A bound that was not filled in from the grant is never met.
		{reports.Worst, reports.AtLeast, grantCPU, false}, {reports.Worst, reports.AtMost, grantScratch, false},
		{reports.Worst, reports.Exactly, grantOutput, false},
	} {
		w := reports.Want{Moment: tt.moment, Rule: tt.rule, Bound: tt.bound}
		if got := w.Met(r); got != tt.want {
			t.Errorf("%s %s %d: %t", tt.moment, tt.rule, tt.bound, got)
		}
	}
	// Not even by a number that is negative itself.
	for _, rule := range []reports.Rule{reports.AtMost, reports.AtLeast, reports.Exactly} {
		n := observers.Reading{Worst: grantOutput}
		if (reports.Want{Moment: reports.Worst, Rule: rule, Bound: grantOutput}).Met(n) {
			t.Errorf("%s: a negative bound was met", rule)
		}
	}
}

func TestOutcomeTable(t *testing.T) {
	for words, want := range map[string]hostile.Outcome{
		"":                      hostile.Unproven,
		"held":                  hostile.Qualified,
		"held held held":        hostile.Qualified,
		"held fell held":        hostile.Refused,
		"held misnamed":         hostile.Refused,
		"held silent":           hostile.Unproven,
		"blind held":            hostile.Unproven,
		"broken":                hostile.Unproven,
		"silent blind broken":   hostile.Unproven,
		"silent fell":           hostile.Refused,
		"misnamed broken":       hostile.Refused,
		"held unheard-of held":  hostile.Unproven,
		"held unheard-of fell":  hostile.Refused,
		"Held":                  hostile.Unproven,
		"held held held broken": hostile.Unproven,
	} {
		var trials []reports.Trial
		for _, w := range strings.Fields(words) {
			trials = append(trials, reports.Trial{Verdict: hostile.Verdict(w)})
		}
		if got := Outcome(trials); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
	if got := Outcome([]reports.Trial{{Verdict: hostile.Held}, {}}); got != hostile.Unproven {
		t.Errorf("a trial without a verdict: %s", got)
	}
	for by := range maps.Keys(heldTrials) {
		if got := Outcome([]reports.Trial{Judge(heldTrials[by]())}); got != hostile.Qualified {
			t.Errorf("%s: %s", by, got)
		}
	}
}
