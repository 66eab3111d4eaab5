package reports

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
)

func mustJUnit(t testing.TB, r *Report) []byte {
	t.Helper()
	data, err := JUnit(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parseJUnit(t testing.TB, data []byte) junitSuites {
	t.Helper()
	var doc junitSuites
	dec := xml.NewDecoder(strings.NewReader(string(data)))
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("parse: %v", err)
	}
	if _, err := dec.Token(); err != io.EOF { // the last line break comes before the end
		if _, err = dec.Token(); err != io.EOF {
			t.Fatalf("after the document: %v", err)
		}
	}
	return doc
}

func TestJUnitIsGolden(t *testing.T) {
	golden(t, "junit.xml", mustJUnit(t, exampleReport()))
}

// Read back, each trial stands once, and each verdict as what it is.
func TestJUnitTellsEachVerdict(t *testing.T) {
	r := exampleReport()
	doc := parseJUnit(t, mustJUnit(t, r))
	verdicts := map[string]hostile.Verdict{}
	for _, trial := range r.Trials {
		verdicts[trial.ID] = trial.Verdict
	}
	names := map[string]bool{}
	failures, errs := 0, 0
	for _, s := range doc.Suites {
		if s.Tests != len(s.Cases) || s.Skipped != 0 {
			t.Errorf("suite %s counts %d tests of %d, %d skipped", s.Name, s.Tests, len(s.Cases), s.Skipped)
		}
		for _, c := range s.Cases {
			name := c.ClassName + " " + c.Name
			if names[name] {
				t.Errorf("%s stands twice", name)
			}
			names[name] = true
			if s.Name == "run" {
				continue
			}
			id := c.Properties[0].Value
			failed, erred := c.Failure != nil, c.Error != nil
			if failed {
				failures++
			}
			if erred {
				errs++
			}
			v := verdicts[id]
			wantFailed := v == hostile.Fell || v == hostile.Misnamed
			wantErred := v == hostile.Silent || v == hostile.Blind || v == hostile.Broken
			if v == "" || failed != wantFailed || erred != wantErred {
				t.Errorf("%s (%s): failure %v, error %v", id, v, failed, erred)
			}
			delete(verdicts, id)
		}
	}
	if len(verdicts) > 0 {
		t.Errorf("missing: %v", verdicts)
	}
	if doc.Tests != len(r.Trials)+1 || doc.Failures != failures || doc.Errors != errs || failures != 3 || errs != 3 {
		t.Errorf("counts %d tests, %d failures (%d), %d errors (%d)", doc.Tests, doc.Failures, failures, doc.Errors, errs)
	}
}

func TestJUnitOrderDoesNotDependOnTheRun(t *testing.T) {
	r := exampleReport()
	want := string(mustJUnit(t, r))
	for i, j := 0, len(r.Trials)-1; i < j; i, j = i+1, j-1 {
		r.Trials[i], r.Trials[j] = r.Trials[j], r.Trials[i]
	}
	if got := string(mustJUnit(t, r)); got != want {
		t.Error("trials in another order give another file")
	}
}

func TestJUnitGivesEqualTrialsDistinctNames(t *testing.T) {
	r := &Report{Outcome: hostile.Qualified}
	for range 3 {
		r.Trials = append(r.Trials, heldTrial(1, "credentials", "shadow", hostile.Refusal{Kind: hostile.EACCES, Place: hostile.FileOwnership}))
	}
	names := map[string]bool{}
	for _, c := range parseJUnit(t, mustJUnit(t, r)).Suites[0].Cases {
		names[c.Name] = true
	}
	if len(names) != 3 {
		t.Errorf("names: %v", names)
	}
}

// What says nothing is never green.
func TestJUnitOfARunThatProvesNothing(t *testing.T) {
	held := heldTrial(1, "credentials", "shadow", hostile.Refusal{Kind: hostile.EACCES, Place: hostile.FileOwnership})
	fell := held
	fell.ID, fell.Verdict = "step-01/credentials/other", hostile.Fell
	odd := held
	odd.Verdict = "fine"
	for name, c := range map[string]struct {
		report Report
		errors int
		failed int
	}{
		"held":               {Report{Outcome: hostile.Qualified, Trials: []Trial{held}}, 0, 0},
		"empty":              {Report{Outcome: hostile.Qualified}, 1, 0},
		"interrupted":        {Report{Outcome: hostile.Unproven, Interrupted: "SIGINT", Trials: []Trial{held}}, 1, 0},
		"interrupted, fell":  {Report{Outcome: hostile.Refused, Interrupted: "SIGINT", Trials: []Trial{held, fell}}, 1, 1},
		"outcome disagrees":  {Report{Outcome: hostile.Refused, Trials: []Trial{held}}, 1, 0},
		"verdicts disagree":  {Report{Outcome: hostile.Qualified, Trials: []Trial{held, odd}}, 2, 0},
		"no word of verdict": {Report{Outcome: hostile.Unproven, Trials: []Trial{odd}}, 1, 0},
	} {
		if doc := parseJUnit(t, mustJUnit(t, &c.report)); doc.Errors != c.errors || doc.Failures != c.failed {
			t.Errorf("%s: %d errors, %d failures", name, doc.Errors, doc.Failures)
		}
	}
}

// FuzzForms puts the same hostile text everywhere: the XML stays well formed
// and the text forms stay text of at most the asked width.
func FuzzForms(f *testing.F) {
	f.Add(nasty, "held", 80)
	f.Add("]]>", "fell", 40)
	f.Add(strings.Repeat("壁", 500), "silent", 120)
	f.Add("\xed\xa0\x80\ufeff\u2028", "", 72)
	f.Fuzz(func(t *testing.T, text, verdict string, width int) {
		r := hostileReport(text, verdict)
		r.Trials = r.Trials[:3] // more of the same finds nothing more
		parseJUnit(t, mustJUnit(t, r))
		checkText(t, r, 40+int(uint(width)%200))
	})
}

// hostileReport holds text wherever a guest, a host name or a bug could put some.
func hostileReport(text, verdict string) *Report {
	r := exampleReport()
	r.Run, r.Interrupted, r.Profile, r.Outcome = text, text, text, hostile.Outcome(text)
	r.Host.Name, r.Host.Kernel, r.Host.Arch, r.Runtime.Version, r.Runtime.Platform = text, text, text, text, text
	r.CannotShow = []string{text}
	for i := range r.Trials {
		t := &r.Trials[i]
		t.Reason, t.Trouble, t.Job, t.Source, t.Verdict = text, text, text, text, hostile.Verdict(verdict)
		t.Expected = hostile.Refusal{Kind: hostile.Kind(text), Place: hostile.Place(text)}
		t.Lifts = []hostile.Lift{hostile.Lift(text)}
		t.Claim = &hostile.Claim{Event: hostile.Failed, Note: text, Call: text}
		t.Claims = []hostile.Claim{*t.Claim, {Event: hostile.Event(text)}}
		t.Ended = &Ended{Reason: text, Detail: text}
		for j := range t.Wants {
			t.Wants[j].Words, t.Wants[j].Value, t.Wants[j].Observer = text, text, text
		}
		for j := range t.Observations {
			o := &t.Observations[j]
			o.Observer, o.Found, o.Lost = text, []string{text}, text
		}
		for j := range t.Controls {
			t.Controls[j].Want, t.Controls[j].Seen, t.Controls[j].Observer = text, text, text
		}
	}
	r.Trials[2].Attempt, r.Trials[2].Route, r.Trials[2].ID = text, text, text
	return r
}
