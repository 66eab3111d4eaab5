package suites

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
)

// Every trial of the suite can hold, and holds on nothing less.
func TestEveryTrialHoldsOnNothingLess(t *testing.T) {
	for _, trial := range Trials() {
		held := func() reports.Trial { return heldAs(trial) }
		expect(t, "complete", held(), hostile.Held)
		inside, _ := trial.Attempt.Route(trial.Route)
		for what, c := range map[string]struct {
			change func(*reports.Trial)
			want   hostile.Verdict
		}{
			"it happened":  {func(r *reports.Trial) { r.Claims = append(r.Claims, hostile.Claim{Event: hostile.Happened}) }, hostile.Fell},
			"failed":       {func(r *reports.Trial) { r.Claims = append(r.Claims, hostile.Claim{Event: hostile.Failed}) }, hostile.Silent},
			"beyond":       {func(r *reports.Trial) { r.Said.Beyond = 1 }, hostile.Silent},
			"no end":       {func(r *reports.Trial) { r.Ended = nil }, hostile.Silent},
			"trouble":      {func(r *reports.Trial) { r.Trouble = "none of it was run" }, hostile.Broken},
			"not expected": {func(r *reports.Trial) { r.Expected = hostile.Refusal{} }, hostile.Broken},
		} {
			r := held()
			c.change(&r)
			expect(t, what, r, c.want)
		}
		if inside.Inside {
			r := held()
			r.Claims = nil
			expect(t, "no claims", r, hostile.Silent)
		}
		switch trial.By {
		case reports.ByClaim:
			r := held()
			r.Claims = r.Claims[:1]
			expect(t, "reached alone", r, hostile.Silent)
			r = held()
			r.Claims[1].Place = hostile.Unknown
			expect(t, "another place", r, hostile.Misnamed)
			r = held()
			r.Claims[1].Kind = hostile.Other
			expect(t, "another kind", r, hostile.Misnamed)
		case reports.ByRunner:
			r := held()
			r.Ended.Refusal, r.Ended.Reason = hostile.Refusal{}, "exited"
			expect(t, "exited", r, hostile.Misnamed)
		case reports.ByHost:
		}
		everyWant(t, held)
	}
}

// everyWant breaches each want, and takes away each part of the sight that it
// stands on.
func everyWant(t *testing.T, held func() reports.Trial) {
	t.Helper()
	for i, w := range held().Wants {
		r := held()
		set(&r, w, breaching(w))
		expect(t, "breach: "+w.Words, r, w.Breach)

		at := slices.IndexFunc(r.Observations, func(o observers.Observation) bool { return o.Observer == w.Observer })
		by := slices.IndexFunc(r.Controls, func(c observers.Control) bool { return c.Observer == w.Observer })
		r.Controls[by].Passed = false
		expect(t, "breach, seen without a control: "+w.Words, r, w.Breach)
		for what, blind := range map[string]func(*reports.Trial){
			"no observation": func(r *reports.Trial) { r.Observations = slices.Delete(r.Observations, at, at+1) },
			"lost":           func(r *reports.Trial) { r.Observations[at].Lost = "overflow" },
			"never looked":   func(r *reports.Trial) { r.Observations[at].Samples = 0 },
			"not measured":   func(r *reports.Trial) { delete(r.Observations[at].Values, w.Value) },
			"no control":     func(r *reports.Trial) { r.Controls = slices.Delete(r.Controls, by, by+1) },
			"control failed": func(r *reports.Trial) { r.Controls[by].Passed = false },
			"one of two controls failed": func(r *reports.Trial) {
				r.Controls = append(r.Controls, observers.Control{Observer: w.Observer})
			},
			"another's control": func(r *reports.Trial) { r.Controls[by].Observer = "another" },
		} {
			r := held()
			blind(&r)
			expect(t, what+": "+w.Observer+" "+w.Value, r, hostile.Blind)
		}
		r = held()
		r.Wants = slices.Clone(r.Wants)
		r.Wants[i].Rule = "nearly"
		expect(t, "unknown rule: "+w.Words, r, w.Breach)
		if w.Bound > 0 {
			r.Wants[i].Rule, r.Wants[i].Bound = w.Rule, grantCPU
			expect(t, "bound not filled in: "+w.Words, r, w.Breach)
		}
	}
}

// A job that does nothing, under observers that see well: nothing was tried, so
// nothing held. The exception is what only the host can tell of any job.
func TestNoTrialHoldsOnAnIdleJob(t *testing.T) {
	for _, trial := range Trials() {
		for _, end := range []reports.Ended{{Reason: "exited"}, {Reason: "wall", Refusal: endings["wall"], WallMS: 10_000}} {
			r := heldAs(trial)
			r.Claims, r.Ended = nil, &end
			for _, w := range r.Wants {
				set(&r, w, 0)
			}
			got := Judge(r)
			if trial.Route != "own-five" && trial.Attempt != hostile.Granted && string(leftBy[trial.Route]) != end.Reason && got.Verdict == hostile.Held {
				t.Errorf("%s: the job ended as %q: %s", got.ID, end.Reason, got.Reason)
			}
		}
	}
}

// spoilers each take one of the four things away that a held trial needs, or
// contradict it. Each reports whether there was anything to spoil.
var spoilers = []func(*reports.Trial, *rand.Rand) bool{
	func(t *reports.Trial, r *rand.Rand) bool { // never reached, or nothing came back
		gone, n := []hostile.Event{hostile.Reached, hostile.Stopped}[r.IntN(2)], len(t.Claims)
		t.Claims = slices.DeleteFunc(t.Claims, func(c hostile.Claim) bool { return c.Event == gone })
		return len(t.Claims) < n
	},
	func(t *reports.Trial, r *rand.Rand) bool {
		i, ok := pick(t.Claims, r)
		if ok && t.Claims[i].Event == hostile.Stopped && t.By == reports.ByClaim {
			t.Claims[i].Kind = hostile.EIO
			return true
		}
		return false
	},
	func(t *reports.Trial, r *rand.Rand) bool {
		bad := []hostile.Event{hostile.Happened, hostile.Failed}[r.IntN(2)]
		t.Claims = slices.Insert(t.Claims, r.IntN(len(t.Claims)+1), hostile.Claim{Event: bad})
		return true
	},
	func(t *reports.Trial, _ *rand.Rand) bool { t.Ended = nil; return true },
	func(t *reports.Trial, r *rand.Rand) bool { t.Said.Beyond = 1 + r.IntN(9); return true },
	func(t *reports.Trial, _ *rand.Rand) bool { t.Trouble = "interrupted"; return true },
	func(t *reports.Trial, r *rand.Rand) bool {
		i, ok := pick(t.Observations, r)
		if ok {
			t.Observations = slices.Delete(t.Observations, i, i+1)
		}
		return ok
	},
	func(t *reports.Trial, r *rand.Rand) bool {
		i, ok := pick(t.Observations, r)
		if ok {
			t.Observations[i].Lost = "overflow"
		}
		return ok
	},
	func(t *reports.Trial, r *rand.Rand) bool {
		i, ok := pick(t.Observations, r)
		if ok {
			t.Observations[i].Samples = 0
		}
		return ok
	},
	func(t *reports.Trial, r *rand.Rand) bool {
		i, ok := pick(t.Controls, r)
		if ok {
			t.Controls = slices.Delete(t.Controls, i, i+1)
		}
		return ok
	},
	func(t *reports.Trial, r *rand.Rand) bool {
		i, ok := pick(t.Controls, r)
		if ok {
			t.Controls[i].Passed = false
		}
		return ok
	},
	func(t *reports.Trial, r *rand.Rand) bool { // a number beyond its bound, by any amount
		i, ok := pick(t.Wants, r)
		if ok {
			w := t.Wants[i]
			far := r.Int64N(1 << 40)
			if w.Rule == reports.AtLeast {
				far = -far
			}
			set(t, w, breaching(w)+far)
		}
		return ok
	},
	func(t *reports.Trial, r *rand.Rand) bool {
		i, ok := pick(t.Wants, r)
		if ok {
			t.Wants = slices.Clone(t.Wants)
			t.Wants[i].Bound = -1 - r.Int64N(20)
		}
		return ok
	},
}

func pick[T any](list []T, r *rand.Rand) (int, bool) {
	if len(list) == 0 {
		return 0, false
	}
	return r.IntN(len(list)), true
}

// FuzzJudgeEveryTrial spoils the evidence of any held trial, once and again:
// it is never held then, and judging is a function of the evidence alone.
func FuzzJudgeEveryTrial(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	trials := Trials()
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 10))
		rt := heldAs(trials[r.IntN(len(trials))])
		spoilt := 0
		for range 1 + r.IntN(3) {
			// Another fault may leave nothing to spoil, never make good.
			if spoilers[r.IntN(len(spoilers))](&rt, r) {
				spoilt++
			}
		}
		first, again := Judge(rt), Judge(rt)
		if !reflect.DeepEqual(first, again) || !reflect.DeepEqual(Judge(first), first) {
			t.Errorf("%s: one evidence, two judgements: %s, %s, %s", rt.ID, first.Reason, again.Reason, Judge(first).Reason)
		}
		if (first.Verdict == hostile.Held) != (spoilt == 0) {
			t.Errorf("%s: %s, spoilt %d times: %s", rt.ID, first.Verdict, spoilt, first.Reason)
		}
	})
}
