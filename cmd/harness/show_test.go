package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
	"tenwalls.dev/harness/suites"
)

func TestLiveLineStaysWithinTheWidth(t *testing.T) {
	p := suites.Progress{Stage: "making the attempts", Done: 41, Total: 107}
	for width, want := range map[int]string{
		0:  "making the attempts: 41 of 107 judged, 12 s",
		80: "making the attempts: 41 of 107 judged, 12 s",
		20: "making the attempts",
		1:  "",
	} {
		if got := liveLine(p, 0, 12*time.Second, width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}

// What did not hold is told while the run still goes.
func TestLiveLineCountsWhatDidNotHold(t *testing.T) {
	var out bytes.Buffer
	s := &show{out: &out, live: &out, table: true, began: time.Now(), stop: make(chan struct{}), width: 80}
	s.progress(suites.Progress{Stage: "making the attempts", Total: 3})
	for i, v := range []hostile.Verdict{hostile.Held, hostile.Fell, hostile.Blind} {
		s.progress(suites.Progress{Trial: &reports.Trial{Verdict: v}, Done: i + 1, Total: 3})
	}
	lines := strings.Split(out.String(), erase)
	if got := lines[len(lines)-1]; !strings.HasPrefix(got, "making the attempts: 3 of 3 judged, 2 not held, ") {
		t.Errorf("last line %q", got)
	}
	if got := lines[2]; strings.Contains(got, "not held") {
		t.Errorf("line of a held trial %q", got)
	}
}

// A log gets each verdict once, no stage and nothing that moves a cursor.
func TestPlainLines(t *testing.T) {
	var out, err bytes.Buffer
	s := newShow(false, &out, &err)
	held := reports.Trial{Step: 5, Attempt: "processor", Route: "relay", Verdict: hostile.Held}
	s.progress(suites.Progress{Stage: "making the attempts", Total: 2})
	s.progress(suites.Progress{Trial: &held, Done: 1, Total: 2})
	s.clear()
	if want := reports.Line(&held) + "\n"; out.String() != want {
		t.Errorf("stdout %q, want %q", out.String(), want)
	}
	if err.Len() != 0 {
		t.Errorf("stderr %q", err.String())
	}
}

// With --json stdout is the report's alone.
func TestProgressBesideJSONGoesToStderr(t *testing.T) {
	var out, err bytes.Buffer
	s := newShow(true, &out, &err)
	s.progress(suites.Progress{Trial: &reports.Trial{Attempt: "census", Route: "all", Verdict: hostile.Held}, Done: 1, Total: 1})
	s.clear()
	if out.Len() != 0 || !strings.Contains(err.String(), "census: all") {
		t.Errorf("stdout %q, stderr %q", out.String(), err.String())
	}
}

func TestSummary(t *testing.T) {
	got := summary(&reports.Report{
		Run: "run_1", Profile: "runsc-deny-all-v1", Runtime: reports.Runtime{Version: "v0.1", Platform: "systrap"},
		Host:    reports.Host{Kernel: "6.18", Arch: "amd64", CgroupVersion: 2},
		Outcome: hostile.Refused, DurationMS: 1250, CannotShow: []string{"the kernel"},
		Trials: []reports.Trial{
			{ID: "step-05/processor/relay", Verdict: hostile.Held},
			{ID: "step-06/memory/pipes", Verdict: hostile.Fell, Reason: "a line\nand \x1b[2J"},
		},
	}, []string{"out/report.json"})
	want := `
tenwalls run_1, profile runsc-deny-all-v1
runsc v0.1 (systrap) on Linux 6.18, amd64, cgroup v2

refused: 2 trials, 1 held, 1 fell, in 1.2 s
no whole proof of this host, harness, runtime and configuration: harness prove shows that every check can fail
A selection of the trials was asked, which qualifies no runner.

Did not hold
  fell step-06/memory/pipes: a line\nand \x1b[2J

What this cannot show
  the kernel

Files
  out/report.json
`
	if got != want {
		t.Errorf("summary:\n%s\nwant:\n%s", got, want)
	}
}

// A run that is unproven for a reason that lies in no trial says so, in the log
// and in the history.
func TestWhyARunProvesNothingIsTold(t *testing.T) {
	r := &reports.Report{Outcome: hostile.Unproven, Complete: true, Unproven: "the last proof is 25h old\x1b[2J", Trials: []reports.Trial{{Verdict: hostile.Held}}}
	const want = `the last proof is 25h old\x1b[2J`
	if got := summary(r, nil); !strings.Contains(got, "\nUnproven: "+want+"\n") {
		t.Errorf("summary:\n%s", got)
	}
	n := &note{history: history.In(t.TempDir())}
	n.judged(r)
	if n.entry.Why != want {
		t.Errorf("history: %q", n.entry.Why)
	}
	r.Interrupted = "interrupted by SIGINT"
	if n.judged(r); n.entry.Why != r.Interrupted {
		t.Errorf("history of an interrupted run: %q", n.entry.Why)
	}
}

func TestOnlyACompleteHeldRunQualifies(t *testing.T) {
	for _, c := range []struct {
		r    reports.Report
		want bool
	}{
		{reports.Report{Outcome: hostile.Qualified, Complete: true}, true},
		{reports.Report{Outcome: hostile.Qualified}, false},
		{reports.Report{Outcome: hostile.Qualified, Complete: true, Interrupted: "interrupted by SIGINT"}, false},
		{reports.Report{Outcome: hostile.Refused, Complete: true}, false},
		{reports.Report{Outcome: hostile.Unproven, Complete: true}, false},
		{reports.Report{Complete: true}, false},
	} {
		if got := qualifies(&c.r); got != c.want {
			t.Errorf("outcome %q, complete %t, interrupted %q: qualifies %t", c.r.Outcome, c.r.Complete, c.r.Interrupted, got)
		}
	}
}
