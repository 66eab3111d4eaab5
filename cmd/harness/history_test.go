package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
	"tenwalls.dev/harness/sandbox/evidence"
)

// noted adds a run to the history of a state folder: noted STATE RUN KIND [DIR].
// With DIR the run is the one whose report is there.
func noted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: noted STATE RUN KIND [DIR]")
	}
	h := history.In(ts.MkAbs(args[0]))
	started := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	e := history.Entry{Run: args[1], Reason: "change: runsc digest", Started: started, Finished: started.Add(11 * time.Second)}
	switch args[2] {
	case "qualified":
		e.Outcome, e.Complete, e.Trials = hostile.Qualified, true, map[hostile.Verdict]int{hostile.Held: 107}
	case "refused":
		e.Outcome, e.Complete, e.Trials = hostile.Refused, true, map[hostile.Verdict]int{hostile.Held: 106, hostile.Fell: 1}
		e.Fell = []string{"step-05/processor/relay"}
	case "interrupted":
		e.Outcome, e.Why, e.Reason = history.Interrupted, "interrupted by SIGTERM", "hand"
	default:
		ts.Fatalf("no kind %s", args[2])
	}
	if len(args) == 4 {
		data := []byte(ts.ReadFile(filepath.Join(args[3], reports.ReportFile)))
		r, err := reports.Decode(data)
		ts.Check(err)
		e.Started, e.Finished = r.Started, r.Started.Add(11*time.Second)
		e.Folder, e.Digests.Report = ts.MkAbs(args[3]), evidence.Digest(data)
	}
	ts.Check(h.Finish(e))
}

func TestSinceOf(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"":                          {},
		"90m":                       now.Add(-90 * time.Minute),
		"7d":                        now.Add(-7 * 24 * time.Hour),
		"0d":                        now,
		"2026-03-01":                time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		"2026-03-01T08:00:00+01:00": time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC),
	} {
		if got, err := sinceOf(in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"-1h", "-1d", "d", "1.5d", "99999d", "yesterday", "2026-13-01", "7", "1w"} {
		if got, err := sinceOf(in, now); err == nil {
			t.Errorf("%q: %s", in, got)
		}
	}
}

// Without its last line a run is told as interrupted, and the exit code of the
// outcome stays the first that is found.
func TestANoteThatCannotBeFinished(t *testing.T) {
	state := t.TempDir()
	n, err := begin(state, "hand")
	if err != nil {
		t.Fatal(err)
	}
	n.entry.Outcome = hostile.Refused
	if err := os.RemoveAll(filepath.Join(state, "harness")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "harness"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.finish(); err == nil {
		t.Error("it was noted in a folder that is a file")
	}
}
