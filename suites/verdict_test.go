package suites

import (
	"slices"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// heldByClaim is evidence with everything that a held verdict needs, and no
// more: each test below takes one thing away.
func heldByClaim() reports.Trial {
	t := reports.Trial{
		ID: "step-01/credentials/shadow", Step: 1, Attempt: "credentials", Route: "shadow", Job: "credentials",
		Expected: ownership, By: reports.ByClaim, Source: "a source",
		Wants: []reports.Want{none("canary", "reads", "count", "no read of a canary")},
		Claims: []hostile.Claim{
			{Attempt: "credentials", Route: "shadow", Event: hostile.Reached},
			{Attempt: "credentials", Route: "shadow", Event: hostile.Stopped, Kind: ownership.Kind, Place: ownership.Place},
		},
		Ended: &reports.Ended{Reason: "exited"},
		Observations: []observers.Observation{{
			Observer: "canary", Samples: 3, Values: map[string]observers.Reading{"reads": {Unit: "count"}},
		}},
		Controls: []observers.Control{{Observer: "canary", Passed: true}},
	}
	return t
}

func heldByRunner() reports.Trial {
	t := heldByClaim()
	t.ID, t.Step, t.Attempt, t.Route = "step-05/processor/relay", 5, "processor", "relay"
	t.Expected, t.By = endings[runsc.ReasonCPU], reports.ByRunner
	t.Claims = []hostile.Claim{{Attempt: "processor", Route: "relay", Event: hostile.Reached}}
	t.Ended = &reports.Ended{Reason: "cpu", ExitCode: 137, Refusal: t.Expected}
	return t
}

func heldByHost() reports.Trial {
	t := heldByRunner()
	t.ID, t.Step, t.Attempt, t.Route = "step-10/leftover/daemon", 10, "leftover", "daemon"
	t.Expected, t.By = hostile.Refusal{Kind: hostile.Ended, Place: hostile.ProcessGroup}, reports.ByHost
	t.Claims = []hostile.Claim{{Attempt: "leftover", Route: "daemon", Event: hostile.Reached}}
	t.Ended = &reports.Ended{Reason: "exited"}
	return t
}

func TestJudgeHolds(t *testing.T) {
	for name, trial := range map[string]reports.Trial{"claim": heldByClaim(), "runner": heldByRunner(), "host": heldByHost()} {
		if got := Judge(trial); got.Verdict != hostile.Held {
			t.Errorf("by %s: %s: %s", name, got.Verdict, got.Reason)
		}
	}
}

func TestJudgeWithOneThingAway(t *testing.T) {
	claim := func(e hostile.Event, r hostile.Refusal) hostile.Claim {
		return hostile.Claim{Attempt: "credentials", Route: "shadow", Event: e, Kind: r.Kind, Place: r.Place}
	}
	absent := hostile.Refusal{Kind: hostile.ENOENT, Place: hostile.Unknown}
	tests := map[string]struct {
		from   func() reports.Trial
		change func(*reports.Trial)
		want   hostile.Verdict
	}{
		"nothing at all":              {heldByClaim, func(t *reports.Trial) { *t = reports.Trial{} }, hostile.Broken},
		"not asked":                   {heldByClaim, func(t *reports.Trial) { t.Trouble = "no runsc" }, hostile.Broken},
		"no such route":               {heldByClaim, func(t *reports.Trial) { t.Route = "nothing" }, hostile.Broken},
		"no claims":                   {heldByClaim, func(t *reports.Trial) { t.Claims = nil }, hostile.Silent},
		"reached only":                {heldByClaim, func(t *reports.Trial) { t.Claims = t.Claims[:1] }, hostile.Silent},
		"refused without reaching":    {heldByClaim, func(t *reports.Trial) { t.Claims = t.Claims[1:] }, hostile.Silent},
		"reached again, no answer":    {heldByClaim, func(t *reports.Trial) { t.Claims = append(t.Claims, t.Claims[0]) }, hostile.Silent},
		"could not try":               {heldByClaim, func(t *reports.Trial) { t.Claims = []hostile.Claim{claim(hostile.Failed, hostile.Refusal{})} }, hostile.Silent},
		"claims dropped":              {heldByClaim, func(t *reports.Trial) { t.Said.Beyond = 1 }, hostile.Silent},
		"no end":                      {heldByClaim, func(t *reports.Trial) { t.Ended = nil }, hostile.Silent},
		"other kind":                  {heldByClaim, func(t *reports.Trial) { t.Claims[1].Kind = hostile.EROFS }, hostile.Misnamed},
		"other place":                 {heldByClaim, func(t *reports.Trial) { t.Claims[1].Place = hostile.Unknown }, hostile.Misnamed},
		"absent, never reached":       {heldByClaim, func(t *reports.Trial) { t.Claims = []hostile.Claim{claim(hostile.Stopped, absent)} }, hostile.Misnamed},
		"one of two is other":         {heldByClaim, func(t *reports.Trial) { t.Claims = append(t.Claims, claim(hostile.Stopped, absent)) }, hostile.Misnamed},
		"ended by a cap meanwhile":    {heldByClaim, func(t *reports.Trial) { t.Claims = t.Claims[:1]; t.Ended = heldByRunner().Ended }, hostile.Misnamed},
		"it happened":                 {heldByClaim, func(t *reports.Trial) { t.Claims[1] = claim(hostile.Happened, hostile.Refusal{}) }, hostile.Fell},
		"it happened as well":         {heldByClaim, func(t *reports.Trial) { t.Claims = append(t.Claims, claim(hostile.Happened, hostile.Refusal{})) }, hostile.Fell},
		"the host saw it":             {heldByClaim, func(t *reports.Trial) { read(t, observers.Reading{Worst: 1}) }, hostile.Fell},
		"seen though uncontrolled":    {heldByClaim, func(t *reports.Trial) { read(t, observers.Reading{Worst: 1}); t.Controls = nil }, hostile.Fell},
		"the host saw another":        {heldByClaim, func(t *reports.Trial) { read(t, observers.Reading{Worst: 1}); t.Wants[0].Breach = hostile.Misnamed }, hostile.Misnamed},
		"somebody else's effect":      {heldByClaim, func(t *reports.Trial) { read(t, observers.Reading{Worst: 1}); t.Wants[0].Breach = hostile.Blind }, hostile.Blind},
		"no observation":              {heldByClaim, func(t *reports.Trial) { t.Observations = nil }, hostile.Blind},
		"lost window":                 {heldByClaim, func(t *reports.Trial) { t.Observations[0].Lost = "overrun" }, hostile.Blind},
		"never looked":                {heldByClaim, func(t *reports.Trial) { t.Observations[0].Samples = 0 }, hostile.Blind},
		"value not measured":          {heldByClaim, func(t *reports.Trial) { t.Observations[0].Values = nil }, hostile.Blind},
		"no control":                  {heldByClaim, func(t *reports.Trial) { t.Controls = nil }, hostile.Blind},
		"control failed":              {heldByClaim, func(t *reports.Trial) { t.Controls[0].Passed = false }, hostile.Blind},
		"one control of two failed":   {heldByClaim, func(t *reports.Trial) { t.Controls = append(t.Controls, observers.Control{Observer: "canary"}) }, hostile.Blind},
		"another observer's control":  {heldByClaim, func(t *reports.Trial) { t.Controls[0].Observer = "egress" }, hostile.Blind},
		"unknown rule":                {heldByClaim, func(t *reports.Trial) { t.Wants[0].Rule = "about" }, hostile.Fell},
		"bound not filled in":         {heldByClaim, func(t *reports.Trial) { t.Wants[0].Rule, t.Wants[0].Bound = reports.AtMost, grantMemoryTolerated }, hostile.Fell},
		"ended by another cap":        {heldByRunner, func(t *reports.Trial) { t.Ended.Refusal = endings[runsc.ReasonWall] }, hostile.Misnamed},
		"ended by itself":             {heldByRunner, func(t *reports.Trial) { t.Ended.Refusal = hostile.Refusal{} }, hostile.Misnamed},
		"capped before the act":       {heldByRunner, func(t *reports.Trial) { t.Claims = nil }, hostile.Silent},
		"capped, and no end recorded": {heldByRunner, func(t *reports.Trial) { t.Ended = nil }, hostile.Silent},
		"nobody looked":               {heldByHost, func(t *reports.Trial) { t.Wants = nil }, hostile.Blind},
		"nothing was left behind":     {heldByHost, func(t *reports.Trial) { t.Claims = nil }, hostile.Silent},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			trial := tt.from()
			tt.change(&trial)
			if got := Judge(trial); got.Verdict != tt.want {
				t.Errorf("%s, want %s: %s", got.Verdict, tt.want, got.Reason)
			}
		})
	}
}

func read(t *reports.Trial, r observers.Reading) { t.Observations[0].Values["reads"] = r }

// FuzzJudge takes evidence apart at random: whatever is missing, the verdict is
// never held, and the same evidence gets the same verdict.
func FuzzJudge(f *testing.F) {
	f.Add(uint8(0), uint16(0))
	f.Add(uint8(1), uint16(0x3ff))
	f.Fuzz(func(t *testing.T, which uint8, away uint16) {
		trial := []func() reports.Trial{heldByClaim, heldByRunner, heldByHost}[which%3]()
		cuts := []func(){
			func() { trial.Claims = nil },
			func() { trial.Observations = nil },
			func() { trial.Controls = nil },
			func() { trial.Ended = nil },
			func() { trial.Controls[0].Passed = false },
			func() { trial.Observations[0].Lost = "lost" },
			func() { read(&trial, observers.Reading{Worst: 1}) },
			func() { trial.Trouble = "trouble" },
			func() { trial.Expected = hostile.Refusal{} },
			func() { trial.Said.Beyond = 1 },
		}
		cut := false
		for i, c := range slices.Backward(cuts) { // the whole lists last
			if away&(1<<i) != 0 {
				cut = true
				c()
			}
		}
		first, second := Judge(trial), Judge(trial)
		if first.Verdict != second.Verdict || first.Reason != second.Reason {
			t.Fatalf("%s and %s for the same evidence", first.Verdict, second.Verdict)
		}
		if (first.Verdict == hostile.Held) != !cut {
			t.Fatalf("%s with %010b taken away: %s", first.Verdict, away, first.Reason)
		}
	})
}

func TestOutcome(t *testing.T) {
	for want, verdicts := range map[hostile.Outcome][][]hostile.Verdict{
		hostile.Qualified: {{hostile.Held}, {hostile.Held, hostile.Held}},
		hostile.Refused:   {{hostile.Held, hostile.Fell}, {hostile.Misnamed, hostile.Blind}, {hostile.Broken, hostile.Misnamed}},
		hostile.Unproven:  {nil, {hostile.Silent}, {hostile.Held, hostile.Blind}, {hostile.Broken, hostile.Held}, {""}},
	} {
		for _, vs := range verdicts {
			var trials []reports.Trial
			for _, v := range vs {
				trials = append(trials, reports.Trial{Verdict: v})
			}
			if got := Outcome(trials); got != want {
				t.Errorf("%v: %s, want %s", vs, got, want)
			}
		}
	}
}

// The catalogue and the trials name exactly the same routes.
func TestTrialsAreTheCatalogue(t *testing.T) {
	listed := map[string]int{}
	for _, trial := range Trials() {
		listed[trial.Name()]++
	}
	total := 0
	for _, a := range hostile.Catalogue() {
		for _, r := range a.Routes {
			total++
			if n := listed[a.Name+"/"+r.Name]; n != 1 {
				t.Errorf("route %s/%s has %d trials", a.Name, r.Name, n)
			}
		}
	}
	placed := 0
	for _, c := range cells {
		placed += len(c.trials)
	}
	if placed != total || len(listed) != total {
		t.Errorf("%d trials are placed, %d listed, the catalogue has %d routes", placed, len(listed), total)
	}
}

func TestEveryBoundIsFilledIn(t *testing.T) {
	cfg := runsc.DefaultConfig()
	for _, trial := range Trials() {
		for _, w := range trial.Under(cfg).Wants {
			if w.Bound < 0 || w.Words == "" || w.Unit == "" || w.Breach == "" || w.Breach == hostile.Held {
				t.Errorf("%s: %+v", trial.ID(), w)
			}
		}
	}
}

func TestFilteredSaysWhatTheActionDoes(t *testing.T) {
	for action, want := range map[string]hostile.Kind{"ERRNO": hostile.EPERM, "TRAP": hostile.SIGSYS, "KILL": hostile.SIGSYS} {
		cfg := runsc.DefaultConfig()
		cfg.EntryPoints.Action = action
		if got := filtered(filterRefuses, cfg); got.Kind != want || got.Place != hostile.EntryPointFilter {
			t.Errorf("%s: %s", action, got)
		}
		if got := filtered(ownership, cfg); got != ownership {
			t.Errorf("%s: %s at another place", action, got)
		}
	}
}
