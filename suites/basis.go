package suites

import (
	"fmt"
	"slices"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// Basis says on which evidence the verdict of a judged trial stands, in words
// of a fixed form, sorted, without numbers: so that a mutant's prediction can
// name not only the verdict but who was to notice.
//
//	inside                 the claim says that it happened
//	inside: KIND at PLACE  the claim says that it was refused so, which is not what was written down
//	runner: KIND at PLACE  the job was ended so, which is not what was written down
//	host: OBSERVER VALUE   an observation is not as wanted
//	control: OBSERVER      the observer's sight was not shown
//	lost: OBSERVER         the observer lost its window, or never looked
//	unsaid                 a claim was due, and none came
//	trouble                the question could not be asked
//
// A trial that held has none. More than what decided the verdict may stand
// there: all of it is in the evidence. Like [Judge] it looks at nothing else.
func Basis(t reports.Trial) []string {
	if t.Verdict == hostile.Held {
		return nil
	}
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, c := range t.Claims {
		switch {
		case c.Event == hostile.Happened:
			add("inside")
		case c.Event == hostile.Stopped && t.By == reports.ByClaim && refusal(c) != t.Expected:
			add("inside: " + refusal(c).String())
		}
	}
	if e := t.Ended; e != nil && e.Refusal != t.Expected && reached(&t) && (t.By == reports.ByRunner || t.By == reports.ByClaim && e.Reason != exited && openEnd(&t)) {
		add("runner: " + ending(*e))
	}
	for _, w := range t.Wants {
		o, ok := observation(&t, w.Observer)
		r, measured := reading(&t, w)
		switch {
		case !ok || o.Lost != "" || o.Samples == 0 || !measured:
			add("lost: " + w.Observer)
		case !w.Met(r):
			add("host: " + w.Observer + " " + w.Value)
		}
		if uncontrolled(&t, w.Observer) != "" {
			add("control: " + w.Observer)
		}
	}
	if t.Verdict == hostile.Silent {
		add("unsaid")
	}
	if t.Trouble != "" {
		add("trouble")
	}
	slices.Sort(out)
	return out
}

// ending is the runner's reason in the words of the catalogue, where it has
// any.
func ending(e reports.Ended) string {
	if e.Refusal == (hostile.Refusal{}) {
		return fmt.Sprintf("%s with %d", e.Reason, e.ExitCode)
	}
	return e.Refusal.String()
}
