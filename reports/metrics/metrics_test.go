package metrics

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
)

var update = flag.Bool("update", false, "rewrite the golden file in testdata")

var monday = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// trial is one of an attempt with a verdict, and with one observer that saw.
func trial(attempt string, v hostile.Verdict) reports.Trial {
	return reports.Trial{
		Attempt: attempt, Verdict: v,
		Controls:     []observers.Control{{Observer: "residue", Passed: true}},
		Observations: []observers.Observation{{Observer: "residue"}},
	}
}

// example is a state in which something of everything happened.
func example() State {
	r := &reports.Report{
		Run: "run_1", Started: monday, DurationMS: 12_345, Outcome: hostile.Refused, Complete: true,
		Harness: reports.Harness{Version: "v1", Digest: "sha256:3"}, Host: reports.Host{Kernel: "6.18.2", BootID: "boot"},
		Runtime: reports.Runtime{Digest: "sha256:1", Version: "release-1 \x1b[2J\xff", Platform: "systrap"},
		Image:   reports.Image{Base: "empty"}, ConfigDigest: "sha256:2",
		Trials: []reports.Trial{
			trial("credentials", hostile.Held), trial("credentials", hostile.Misnamed), trial("credentials", hostile.Fell),
			trial("memory", hostile.Blind), trial("memory", hostile.Silent), trial("metadata", hostile.Held), trial("no such attempt", hostile.Held),
			trial("disk", "no such verdict"),
		},
	}
	r.Trials[3].Controls = append(r.Trials[3].Controls, observers.Control{Observer: "oom"})
	r.Trials[5].Observations = append(r.Trials[5].Observations, observers.Observation{Observer: "egress", Lost: "its window"})
	entry := func(n int, reason string, o hostile.Outcome) history.Entry {
		at := monday.Add(time.Duration(n) * time.Hour)
		return history.Entry{Run: "run", Reason: reason, Started: at, Finished: at.Add(12345 * time.Millisecond), Outcome: o, Complete: true}
	}
	selection := entry(2, "hand", hostile.Qualified)
	selection.Complete = false
	return State{
		Report: r, Expires: monday.Add(24 * time.Hour), Proof: monday.Add(-time.Hour),
		Drift: &reports.Difference{Changes: []reports.Change{{Section: reports.InForce}, {Section: reports.Verdicts}, {Section: reports.Census}}},
		Runs: history.TallyOf(
			entry(0, "start", hostile.Qualified), entry(1, "change: runsc digest", hostile.Unproven), selection,
			entry(3, "schedule", hostile.Refused), entry(4, "\x1b odd", history.Interrupted), entry(5, "schedule", history.Running),
		),
	}
}

// text is what a scrape or a textfile shows.
func text(t *testing.T, s State) string {
	t.Helper()
	m := New("v1")
	m.Set(s)
	path := filepath.Join(t.TempDir(), "tenwalls.prom")
	if err := m.WriteTextfile(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestGolden(t *testing.T) {
	got := text(t, example())
	version := got[strings.Index(got, `goversion="`):]
	version, _, _ = strings.Cut(version, ",")
	got = strings.ReplaceAll(got, version, `goversion="go"`)
	path := filepath.Join("testdata", "metrics.prom")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test -update rewrites it; -want +got):\n%s", path, diff)
	}
}

func TestLint(t *testing.T) {
	for name, s := range map[string]State{"nothing": {}, "everything": example()} {
		m := New("v1")
		m.Set(s)
		problems, err := testutil.GatherAndLint(m.Registry())
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
	}
}

// What is not known is absent, so that an alert can ask for it; nothing is told
// as good by default.
func TestNothingIsKnownAtFirst(t *testing.T) {
	got := text(t, State{})
	for _, name := range []string{
		"run_outcome", "attempt_verdict", "routes", "run_duration_seconds", "attestation_expires", "last_run", "last_qualified", "last_proof",
		"drift_differences", "observer_blind", "identity_info",
	} {
		if strings.Contains(got, "tenwalls_"+name) {
			t.Errorf("%s is told of no run", name)
		}
	}
	if !strings.Contains(got, `tenwalls_build_info{`) || !strings.Contains(got, `tenwalls_runs_total{outcome="refused",reason="change"} 0`) {
		t.Errorf("told:\n%s", got)
	}
}

// A selection that held covers nothing up; one that did not is told.
func TestASelectionThatHeld(t *testing.T) {
	s := example()
	run := func(hour int, o hostile.Outcome, complete bool) history.Entry {
		at := monday.Add(time.Duration(hour) * time.Hour)
		return history.Entry{Run: "run", Reason: "change: runsc digest", Started: at, Finished: at.Add(12345 * time.Millisecond), Outcome: o, Complete: complete}
	}
	good, unproven, fell, held := run(0, hostile.Qualified, true), run(0, hostile.Unproven, true), run(1, hostile.Refused, true), run(2, hostile.Qualified, false)
	s.Runs = history.TallyOf(good, unproven, fell, held)
	got := text(t, s)
	for _, want := range []string{
		`tenwalls_run_outcome{outcome="refused"} 1`, `tenwalls_run_outcome{outcome="qualified"} 0`,
		`tenwalls_last_run_timestamp_seconds 1.772442012345e+09`, `tenwalls_runs_total{outcome="qualified",reason="change"} 2`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
	fell.Complete = false
	s.Runs = history.TallyOf(good, fell)
	if got := text(t, s); !strings.Contains(got, `tenwalls_run_outcome{outcome="refused"} 1`) {
		t.Errorf("a selection that was refused is not told:\n%s", got)
	}
}

// An observer of a job that was never run is not blind: there was nothing to see.
func TestAJobThatNeverRanBlindsNobody(t *testing.T) {
	s := example()
	for i := range s.Report.Trials {
		s.Report.Trials[i].Trouble = "the job was not run (start): no such platform"
	}
	if got := text(t, s); !strings.Contains(got, `tenwalls_observer_blind{observer="egress"} 0`) {
		t.Errorf("told:\n%s", got)
	}
}

// A state replaces the one before it whole.
func TestNothingOfAnEarlierStateStays(t *testing.T) {
	m := New("v1")
	m.Set(example())
	if n, err := testutil.GatherAndCount(m.Registry(), "tenwalls_attempt_verdict"); err != nil || n == 0 {
		t.Fatalf("%d, %v", n, err)
	}
	m.Set(State{})
	if n, err := testutil.GatherAndCount(m.Registry(), "tenwalls_attempt_verdict", "tenwalls_observer_blind"); err != nil || n != 0 {
		t.Errorf("%d series of an earlier run, %v", n, err)
	}
}

// Whatever a report holds, the number of series is bounded.
func TestSeriesAreBounded(t *testing.T) {
	s := example()
	var runs []history.Entry
	for i := range 5000 {
		odd := trial(strings.Repeat("a", i), hostile.Verdict(strings.Repeat("v", i)))
		odd.Controls[0].Observer = fmt.Sprint("observer ", i)
		s.Report.Trials = append(s.Report.Trials, odd)
		runs = append(runs, history.Entry{Reason: strings.Repeat("r", i), Outcome: hostile.Outcome(strings.Repeat("o", i)), Started: monday})
	}
	s.Runs = history.TallyOf(runs...)
	m := New("v1")
	m.Set(s)
	n, err := testutil.GatherAndCount(m.Registry())
	most := len(hostile.Catalogue())*len(verdicts) + len(history.Kinds)*len(outcomes) + maxObservers + 30
	if err != nil || n > most {
		t.Errorf("%d series, more than %d; %v", n, most, err)
	}
}

func TestTextfileThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "such", "tenwalls.prom")
	if err := New("v1").WriteTextfile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("err = %v", err)
	}
}
