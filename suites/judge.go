package suites

import (
	"fmt"
	"slices"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
)

// Judge returns the trial with its verdict, the reason for it in one sentence,
// and the claim that was judged. It looks at nothing but the trial, so the same
// evidence always gets the same verdict.
//
// A trial is held only when four things are there at once: the payload reached
// the act, the refusal that was written down came, the host saw nothing else,
// and every observer involved was shown able to see in the same run. Missing
// evidence is never good evidence.
func Judge(t reports.Trial) reports.Trial {
	t.Claim = deciding(t)
	for _, rule := range []func(*reports.Trial) (hostile.Verdict, string){
		unwritten, effect, unasked, starved, otherRefusal, unsaid, unseen,
	} {
		if v, why := rule(&t); v != "" {
			t.Verdict, t.Reason = v, why
			return t
		}
	}
	t.Verdict = hostile.Held
	t.Reason = fmt.Sprintf("%s, as written down; %s", t.Expected, agreed(t))
	return t
}

// Outcome is the judgement of a run. A run without trials has shown nothing.
func Outcome(trials []reports.Trial) hostile.Outcome {
	out := hostile.Qualified
	if len(trials) == 0 {
		return hostile.Unproven
	}
	for _, t := range trials {
		switch t.Verdict {
		case hostile.Held:
		case hostile.Fell, hostile.Misnamed:
			return hostile.Refused
		default:
			out = hostile.Unproven
		}
	}
	return out
}

// deciding picks the claim that decides: that it happened, else a refusal that
// is not the expected one, else the expected one, else the last word.
func deciding(t reports.Trial) *hostile.Claim {
	rank := func(c hostile.Claim) int {
		switch {
		case c.Event == hostile.Happened:
			return 4
		case c.Event == hostile.Stopped && refusal(c) != t.Expected:
			return 3
		case c.Event == hostile.Stopped:
			return 2
		case c.Event == hostile.Failed:
			return 1
		}
		return 0
	}
	var best *hostile.Claim
	for i := range t.Claims {
		if best == nil || rank(t.Claims[i]) > rank(*best) || (rank(*best) == 0 && rank(t.Claims[i]) == 0) {
			best = &t.Claims[i]
		}
	}
	return best
}

func refusal(c hostile.Claim) hostile.Refusal { return hostile.Refusal{Kind: c.Kind, Place: c.Place} }

// unwritten: there is nothing to judge by.
func unwritten(t *reports.Trial) (hostile.Verdict, string) {
	if t.Expected == (hostile.Refusal{}) || !slices.Contains([]reports.By{reports.ByClaim, reports.ByRunner, reports.ByHost}, t.By) {
		return hostile.Broken, "not asked: no expectation or no authority was written down"
	}
	if _, ok := route(t); !ok {
		return hostile.Broken, "not asked: the catalogue has no such route"
	}
	return "", ""
}

// unasked: the harness or the runner failed before the question was asked, or
// before all of the evidence was taken. An effect that was seen all the same is
// judged before this.
func unasked(t *reports.Trial) (hostile.Verdict, string) {
	if t.Trouble != "" {
		return hostile.Broken, "not asked: " + t.Trouble
	}
	return "", ""
}

// starved: the wall clock ended the job before it had used up what the processor
// cap allows, and the host had not as much idle time as it lacked. So the host
// was busy, and the cap was not put to the test. With idle time left it would
// have been another wall that held it back.
func starved(t *reports.Trial) (hostile.Verdict, string) {
	if t.By != reports.ByRunner || t.Expected.Kind != hostile.CPUCap || t.Ended == nil || t.Ended.Refusal.Kind != hostile.WallCap || !reached(t) {
		return "", ""
	}
	for _, w := range t.Wants {
		if w.Observer != "processor" || w.Value != "usage" || w.Rule != reports.AtLeast {
			continue
		}
		usage, ok := reading(t, w)
		idle, known := reading(t, reports.Want{Observer: w.Observer, Value: "idle"})
		if !ok || !known || usage.After >= w.Bound || idle.After-idle.Before >= w.Bound-usage.After {
			continue
		}
		return hostile.Broken, fmt.Sprintf("not asked: the host was too busy: the job got %d ms of the %d ms that the cap allows before the wall clock ended it, and all processors together were idle for %d ms of that time",
			usage.After/1e6, w.Bound/1e6, (idle.After-idle.Before)/1e6)
	}
	return "", ""
}

// effect: it happened, whoever says so.
func effect(t *reports.Trial) (hostile.Verdict, string) {
	if c := t.Claim; c != nil && c.Event == hostile.Happened {
		return hostile.Fell, fmt.Sprintf("expected %s, but it happened: %s (%d) %s", t.Expected, c.Call, c.Count, c.Note)
	}
	return breach(t, hostile.Fell)
}

// breach finds a want that an observation contradicts with that verdict. A
// breach counts also when the observer's control failed: it did see that.
func breach(t *reports.Trial, v hostile.Verdict) (hostile.Verdict, string) {
	for _, w := range t.Wants {
		r, ok := reading(t, w)
		if w.Breach != v || !ok {
			continue
		}
		if !w.Met(r) {
			return v, fmt.Sprintf("expected %s, but the host saw otherwise: wanted %s (%s %s %d %s), seen %d%s",
				t.Expected, w.Words, w.Value, w.Rule, w.Bound, w.Unit, w.Measured(r), found(t, w.Observer))
		}
	}
	return "", ""
}

// otherRefusal: refused, but not so, or not there.
func otherRefusal(t *reports.Trial) (hostile.Verdict, string) {
	for _, c := range t.Claims {
		if c.Event == hostile.Stopped && t.By == reports.ByClaim && refusal(c) != t.Expected {
			return hostile.Misnamed, fmt.Sprintf("expected %s, but it was %s: %s %s", t.Expected, refusal(c), c.Call, c.Note)
		}
	}
	if e := t.Ended; t.By == reports.ByRunner && e != nil && reached(t) && e.Refusal != t.Expected {
		return hostile.Misnamed, fmt.Sprintf("expected %s, but the job ended as %q with %d: %s (processor time %d ms, wall clock %d ms) %s",
			t.Expected, e.Reason, e.ExitCode, e.Refusal, e.CPUMS, e.WallMS, e.Detail)
	}
	if e := t.Ended; t.By == reports.ByClaim && e != nil && e.Refusal != (hostile.Refusal{}) && e.Reason != exited && reached(t) && openEnd(t) {
		return hostile.Misnamed, fmt.Sprintf("expected %s, but while the payload tried, the job was ended by %s (processor time %d ms, wall clock %d ms)",
			t.Expected, e.Refusal, e.CPUMS, e.WallMS)
	}
	// What an act leaves on the host is missed only where the act was reached: a
	// payload that did nothing was not refused by another wall.
	if r, ok := route(t); ok && r.Inside && !reached(t) {
		return "", ""
	}
	return breach(t, hostile.Misnamed)
}

// exited is the runner's reason for a job that no cap ended.
const exited = "exited"

// unsaid: no claim where one was due, or an act that was never reached.
func unsaid(t *reports.Trial) (hostile.Verdict, string) {
	r, _ := route(t)
	ended := "the job left no record of its end"
	if t.Ended != nil {
		ended = fmt.Sprintf("the job ended as %q with %d", t.Ended.Reason, t.Ended.ExitCode)
	}
	said := fmt.Sprintf("%d claims of another run or route, %d lines that are no claim", t.Said.Foreign, t.Said.Noise)
	failed := failure(t)
	switch {
	case t.Said.Beyond > 0:
		return hostile.Silent, fmt.Sprintf("%d claims were beyond the bound and dropped, so what was said is not known; %s", t.Said.Beyond, ended)
	case failed != nil:
		return hostile.Silent, fmt.Sprintf("the payload could not make the attempt: %s %s", failed.Call, failed.Note)
	case r.Inside && !reached(t):
		return hostile.Silent, fmt.Sprintf("the payload never said that it reached the act; %s; %s", ended, said)
	case t.By == reports.ByClaim && refusals(t) == 0:
		return hostile.Silent, fmt.Sprintf("the payload reached the act and said nothing of what came back; %s; %s", ended, said)
	case t.By == reports.ByClaim && openEnd(t):
		return hostile.Silent, fmt.Sprintf("the payload reached an act, the %d. it named, and said nothing of what came back; %s", reaches(t), ended)
	case t.Ended == nil:
		return hostile.Silent, ended
	case t.Attempt == hostile.Leftover.Name && leftBehind[t.Route] != "" && t.Ended.Reason != string(leftBehind[t.Route]):
		return hostile.Silent, fmt.Sprintf("what is left behind by %q was not tried: %s", leftBehind[t.Route], ended)
	}
	return "", ""
}

// failure is the first claim that an act could not be tried, also where another
// act of the route was refused.
func failure(t *reports.Trial) *hostile.Claim {
	for i := range t.Claims {
		if t.Claims[i].Event == hostile.Failed {
			return &t.Claims[i]
		}
	}
	return nil
}

// unseen: an observer failed its control, lost its window or never looked.
func unseen(t *reports.Trial) (hostile.Verdict, string) {
	if v, why := breach(t, hostile.Blind); v != "" {
		return v, why
	}
	if len(t.Wants) == 0 && t.By != reports.ByClaim {
		return hostile.Blind, "no observer was asked"
	}
	for _, w := range t.Wants {
		o, ok := observation(t, w.Observer)
		switch {
		case !ok:
			return hostile.Blind, fmt.Sprintf("observer %s left no observation", w.Observer)
		case o.Lost != "":
			return hostile.Blind, fmt.Sprintf("observer %s lost its window: %s", w.Observer, o.Lost)
		case o.Samples == 0:
			return hostile.Blind, fmt.Sprintf("observer %s never looked", w.Observer)
		}
		if _, ok := o.Values[w.Value]; !ok {
			return hostile.Blind, fmt.Sprintf("observer %s did not measure %s", w.Observer, w.Value)
		}
		if why := uncontrolled(t, w.Observer); why != "" {
			return hostile.Blind, why
		}
		if r, _ := reading(t, w); !w.Met(r) { // its breach has no verdict of its own
			return hostile.Blind, fmt.Sprintf("observer %s saw otherwise than wanted (%s), and %q is no verdict for that", w.Observer, w.Words, w.Breach)
		}
	}
	return "", ""
}

// uncontrolled tells why an observer's sight was not shown: every control of
// it has to have passed, and there has to be one.
func uncontrolled(t *reports.Trial, observer string) string {
	seen := false
	for _, c := range t.Controls {
		if c.Observer != observer {
			continue
		}
		if !c.Passed {
			return fmt.Sprintf("observer %s failed its control: %s: wanted %s, saw %s: %s", observer, c.Effect, c.Want, c.Seen, c.Reason)
		}
		seen = true
	}
	if !seen {
		return fmt.Sprintf("observer %s had no control", observer)
	}
	return ""
}

func agreed(t reports.Trial) string {
	if len(t.Wants) == 0 {
		return "the place is inside, and no host observation exists for it"
	}
	var names []string
	for _, w := range t.Wants {
		if !slices.Contains(names, w.Observer) {
			names = append(names, w.Observer)
		}
	}
	return fmt.Sprintf("the host agrees (%d wants over %v, each observer controlled)", len(t.Wants), names)
}

func reading(t *reports.Trial, w reports.Want) (observers.Reading, bool) {
	o, ok := observation(t, w.Observer)
	if !ok {
		return observers.Reading{}, false
	}
	r, ok := o.Values[w.Value]
	return r, ok
}

func observation(t *reports.Trial, name string) (observers.Observation, bool) {
	i := slices.IndexFunc(t.Observations, func(o observers.Observation) bool { return o.Observer == name })
	if i < 0 {
		return observers.Observation{}, false
	}
	return t.Observations[i], true
}

func found(t *reports.Trial, name string) string {
	if o, ok := observation(t, name); ok && len(o.Found) > 0 {
		return fmt.Sprintf(": %s", o.Found[0])
	}
	return ""
}

func route(t *reports.Trial) (hostile.Route, bool) {
	a, ok := hostile.Find(t.Attempt)
	if !ok {
		return hostile.Route{}, false
	}
	return a.Route(t.Route)
}

func count(t *reports.Trial, e hostile.Event) (n int) {
	for _, c := range t.Claims {
		if c.Event == e {
			n++
		}
	}
	return n
}

func reached(t *reports.Trial) bool { return reaches(t) > 0 }
func reaches(t *reports.Trial) int  { return count(t, hostile.Reached) }
func refusals(t *reports.Trial) int { return count(t, hostile.Stopped) }

// openEnd tells whether the last act that the payload reached has no answer.
func openEnd(t *reports.Trial) bool {
	for i := len(t.Claims) - 1; i >= 0; i-- {
		switch t.Claims[i].Event {
		case hostile.Reached:
			return true
		case hostile.Stopped:
			return false
		}
	}
	return true
}
