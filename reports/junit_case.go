package reports

import (
	"fmt"
	"strings"

	"tenwalls.dev/harness/hostile"
)

const (
	maxShown    = 400 // columns of one property, message or line of evidence
	maxEvidence = 40  // lines of evidence of one trial
)

// suiteOf is one attempt. names holds every class and name given so far: GitLab
// keeps only the first of two cases of one name.
func suiteOf(r *Report, g group, names map[string]bool) junitSuite {
	started, ms := g.trials[0].Started, int64(0)
	for _, t := range g.trials {
		if t.Started.Before(started) {
			started = t.Started
		}
		ms += t.DurationMS
	}
	s := newSuite(r, strings.TrimPrefix(className(g), "tenwalls."), started, ms)
	for _, t := range g.trials {
		c := caseOf(t)
		c.ClassName = className(g)
		c.Name = unique(c.ClassName, c.Name, t.ID, names)
		s.Cases = append(s.Cases, c)
	}
	return s
}

// unique returns a name that the class has not given yet.
func unique(class, name, id string, names map[string]bool) string {
	candidate := name
	for n := 1; names[class+"\x00"+candidate]; n++ {
		candidate = fmt.Sprintf("%s [%s #%d]", name, short(id, maxNoteShown), n)
	}
	names[class+"\x00"+candidate] = true
	return candidate
}

func caseOf(t *Trial) junitCase {
	c := junitCase{
		Name: short(t.Route, maxNoteShown) + ": " + short(t.Expected.String(), maxNoteShown),
		Time: seconds(t.DurationMS),
		Properties: properties(
			"id", t.ID,
			"verdict", string(t.Verdict),
			"expected", t.Expected.String(),
			"by", string(t.By),
			"claim", insideSaid(t),
			"host", hostSaw(t),
			"lifts", lifts(t),
			"job", t.Job,
			"source", t.Source,
		),
		Out: &junitText{Text: evidence(t)},
	}
	fault := &junitFault{
		Message: short(t.Reason, maxShown),
		Type:    short(string(t.Verdict), maxNoteShown),
		Text:    particulars(t),
	}
	switch t.Verdict {
	case hostile.Held:
	case hostile.Fell, hostile.Misnamed:
		c.Failure = fault
	default:
		c.Error = fault
	}
	return c
}

// particulars are the lines that a person reads first when a trial did not hold.
func particulars(t *Trial) string {
	lines := []string{
		t.label() + ": " + short(t.Route, maxNoteShown) + ": " + short(string(t.Verdict), maxNoteShown),
		"wall: " + Harmless(string(t.Expected.Place)),
		"expected: " + Harmless(t.Expected.String()),
		"inside said: " + cut(insideSaid(t), maxShown),
		"host saw: " + cut(hostSaw(t), maxShown),
		"reason: " + short(t.Reason, maxShown),
	}
	if t.Trouble != "" {
		lines = append(lines, "trouble: "+short(t.Trouble, maxShown))
	}
	return strings.Join(lines, "\n")
}

// evidence is what was recorded, a line each, bounded; the whole stands in
// report.json.
func evidence(t *Trial) string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, cut(fmt.Sprintf(format, args...), maxShown))
	}
	for _, c := range t.Controls {
		passed := "passed"
		if !c.Passed {
			passed = "FAILED"
		}
		add("control %s %s: wanted %s, saw %s", Harmless(c.Observer), passed, short(c.Want, maxNoteShown), short(c.Seen, maxNoteShown))
	}
	for _, w := range t.Wants {
		said, met := wantSeen(w, t.Observations)
		state := "as wanted"
		if !met {
			state = "NOT as wanted"
		}
		add("host %s: %s (%s): %s", Harmless(w.Observer), short(w.Words, maxNoteShown), state, said)
	}
	for _, o := range t.Observations {
		for _, f := range o.Found {
			add("host %s found %s", Harmless(o.Observer), short(f, maxNoteShown))
		}
	}
	if e := t.Ended; e != nil {
		add("ended %s: exit %d, processor %s s, wall %s s", short(e.Reason, maxNoteShown), e.ExitCode, seconds(e.CPUMS), seconds(e.WallMS))
	}
	for _, c := range t.Claims {
		words := []string{"claim " + Harmless(string(c.Event))}
		if c.Event == hostile.Stopped {
			words[0] += ", " + Harmless(hostile.Refusal{Kind: c.Kind, Place: c.Place}.String())
		}
		for _, s := range []string{c.Call, c.Note} {
			if s != "" {
				words = append(words, short(s, maxNoteShown))
			}
		}
		add("%s", strings.Join(words, ": "))
	}
	add("beside the claims: %d foreign, %d noise, %d beyond the bound", t.Said.Foreign, t.Said.Noise, t.Said.Beyond)
	if len(lines) > maxEvidence {
		more := len(lines) - maxEvidence
		lines = append(lines[:maxEvidence], fmt.Sprintf("... and %d more lines", more))
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}
