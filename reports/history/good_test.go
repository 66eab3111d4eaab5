package history

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/evidence"
)

// goodRun notes a good run with a memory limit in force, and keeps its report.
func goodRun(t *testing.T, h *History, run, memory string) *reports.Report {
	t.Helper()
	r := &reports.Report{
		Schema: reports.Schema, Run: run, Started: monday, Outcome: hostile.Qualified, Complete: true,
		InForce: map[string]string{"cgroup: memory limit": memory}, Trials: []reports.Trial{},
	}
	data, err := reports.Encode(r)
	must(t, err)
	e := Of(r)
	e.Digests.Report = evidence.Digest(data)
	must(t, h.Begin(Entry{Run: run, Reason: "start", Started: monday}))
	must(t, h.KeepGood(data))
	must(t, h.Finish(e))
	return r
}

func drift(t *testing.T, h *History, r *reports.Report) []string {
	t.Helper()
	entries, _, err := h.Entries(time.Time{})
	must(t, err)
	d, err := h.Drift(entries, r)
	must(t, err)
	if d == nil {
		return nil
	}
	return append([]string{}, d.DriftWords()...)
}

// A run is compared with the good one before it, by its copy, also after it has
// become the last good one itself.
func TestDriftFromTheLastGoodRun(t *testing.T) {
	h := ledger(t)
	first := goodRun(t, h, "run_1", "268435456")
	if got := drift(t, h, first); got != nil {
		t.Errorf("the first run has drifted: %q", got)
	}
	second := goodRun(t, h, "run_2", "9223372036854775807")
	same(t, drift(t, h, second), []string{"memory limit of the job's cgroup: 268435456 before, none now; last good run run_1 of 2026-03-02T08:00:00Z"})
	same(t, drift(t, h, goodRun(t, h, "run_3", "9223372036854775807")), []string{})
	// One that is not noted yet is compared with the last.
	other := *first
	other.Run = "run_4"
	same(t, drift(t, h, &other), []string{"memory limit of the job's cgroup: none before, 268435456 now; last good run run_3 of 2026-03-02T08:00:00Z"})
}

// A copy that was altered is nobody's report, and an older one takes its place.
func TestACopyThatWasAltered(t *testing.T) {
	h := ledger(t)
	goodRun(t, h, "run_1", "1")
	goodRun(t, h, "run_2", "2")
	must(t, os.WriteFile(filepath.Join(filepath.Dir(h.Path()), goodFile), []byte("{}"), 0o644))
	entries, _, err := h.Entries(time.Time{})
	must(t, err)
	if r, err := h.LastGoodReport(entries); err != nil || r.Run != "run_1" {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, os.Remove(filepath.Join(filepath.Dir(h.Path()), beforeFile)))
	if r, err := h.LastGoodReport(entries); err == nil {
		t.Errorf("%+v", r)
	}
}

func TestTheCopyLeavesNothingHalf(t *testing.T) {
	h := ledger(t)
	goodRun(t, h, "run_1", "1")
	goodRun(t, h, "run_2", "2")
	names, err := filepath.Glob(filepath.Join(filepath.Dir(h.Path()), "*"))
	must(t, err)
	var got []string
	for _, n := range names {
		got = append(got, filepath.Base(n))
	}
	hidden, err := filepath.Glob(filepath.Join(filepath.Dir(h.Path()), ".*"))
	must(t, err)
	same(t, append(got, hidden...), []string{FileName, FileName + ".lock", beforeFile, goodFile})
}
