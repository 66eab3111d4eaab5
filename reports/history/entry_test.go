package history

import (
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// A drift is told also of a run in which every wall held.
func TestDriftIsTold(t *testing.T) {
	r := &reports.Report{Run: "run_1", Outcome: hostile.Qualified, Complete: true, Drift: []string{"memory limit", "flags"}, Trials: []reports.Trial{{Verdict: hostile.Held}}}
	if s := Of(r).Summary(); s != "1 held, drift: 2 differences" {
		t.Error(s)
	}
}

func TestEntryOfAReport(t *testing.T) {
	r := &reports.Report{
		Run: "run_1", Started: monday, DurationMS: 12_000, Outcome: hostile.Refused, Complete: true,
		Harness: reports.Harness{Version: "v1", Digest: "sha256:3"}, Host: reports.Host{Kernel: "6.18.2", BootID: "b"},
		Runtime: reports.Runtime{Digest: "sha256:1"}, Image: reports.Image{Base: "empty", Digest: "sha256:9"}, ConfigDigest: "sha256:2",
		Trials: []reports.Trial{
			{ID: "a", Verdict: hostile.Held}, {ID: "b", Verdict: hostile.Fell}, {ID: "c", Verdict: hostile.Misnamed},
			{ID: "d", Verdict: hostile.Blind}, {ID: "e", Verdict: hostile.Held},
		},
	}
	want := Entry{
		Run: "run_1", Started: monday, Finished: monday.Add(12 * time.Second), Outcome: hostile.Refused, Complete: true,
		Trials: map[hostile.Verdict]int{hostile.Held: 2, hostile.Fell: 1, hostile.Misnamed: 1, hostile.Blind: 1},
		Fell:   []string{"b"}, Misnamed: []string{"c"},
		Digests: Digests{Runtime: "sha256:1", Config: "sha256:2", Image: "empty", Harness: "sha256:3", Kernel: "6.18.2"},
		BootID:  "b", Version: "v1",
	}
	same(t, Of(r), want)
	r.Outcome, r.Interrupted = hostile.Unproven, "interrupted by SIGTERM"
	want.Outcome, want.Why = Interrupted, "interrupted by SIGTERM"
	same(t, Of(r), want)
}
