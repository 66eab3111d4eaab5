package suites

import (
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// recorded is a trial as a run under that configuration records what it asked.
func recorded(t *Trial, cfg runsc.Config) reports.Trial {
	asked := t.Under(cfg)
	return reports.Trial{ID: t.ID(), Expected: asked.Expected, By: asked.By, Lifts: asked.Lifts(), Wants: asked.Wants}
}

func TestAskedAsItIsAsked(t *testing.T) {
	other := runsc.DefaultConfig()
	other.EntryPoints.Action = "KILL"
	other.Limits.CPU, other.Limits.Memory, other.Limits.Processes = 3e9, 300<<20, 48
	other.Limits.Scratch, other.Limits.Wall, other.Limits.Output = 32<<20, 12e9, 2<<20
	other.Limits.Artifacts, other.Limits.HostTasks = 8<<20, 700
	for _, cfg := range []runsc.Config{runsc.DefaultConfig(), other} {
		for _, tr := range Trials() {
			if why := tr.AskedOtherwise(recorded(tr, cfg), cfg.Limits.Limits()); why != "" {
				t.Errorf("%s under %s: %s", tr.ID(), cfg.EntryPoints.Action, why)
			}
		}
	}
}

func TestAskedOtherwise(t *testing.T) {
	cfg := runsc.DefaultConfig()
	for name, tt := range map[string]struct {
		of     string
		change func(*reports.Trial)
		want   string
	}{
		"another refusal": {"disk/tmp", func(r *reports.Trial) { r.Expected.Kind = hostile.ENOENT }, "expected was ENOENT"},
		"another place":   {"disk/tmp", func(r *reports.Trial) { r.Expected.Place = hostile.Unknown }, "at the unknown"},
		"SIGSYS of no filter": {"disk/tmp", func(r *reports.Trial) { r.Expected.Kind = hostile.SIGSYS },
			"expected was SIGSYS"},
		"another judge":   {"disk/tmp", func(r *reports.Trial) { r.By = reports.ByHost }, "it was judged by host"},
		"a lift":          {"disk/tmp", func(r *reports.Trial) { r.Lifts = []hostile.Lift{hostile.LiftFilter} }, "lifted was"},
		"one want less":   {"disk/tmp", func(r *reports.Trial) { r.Wants = r.Wants[1:] }, "it does not want"},
		"no wants":        {"limits/tasks", func(r *reports.Trial) { r.Wants = nil }, "it does not want"},
		"a wider bound":   {"limits/memory", func(r *reports.Trial) { r.Wants[0].Bound++ }, "it does not want memory"},
		"no cap of tasks": {"limits/tasks", func(r *reports.Trial) { r.Wants[0].Bound = grantHostTasks }, "it does not want tasks"},
		"a milder breach": {"disk/tmp", func(r *reports.Trial) { r.Wants[0].Breach = hostile.Held }, "it does not want"},
		"one want more":   {"disk/tmp", func(r *reports.Trial) { r.Wants = append(r.Wants, r.Wants[0]) }, "things of the host"},
	} {
		tr := find(t, tt.of)
		r := recorded(tr, cfg)
		tt.change(&r)
		if why := tr.AskedOtherwise(r, cfg.Limits.Limits()); !strings.Contains(why, tt.want) {
			t.Errorf("%s: got %q, want %q", name, why, tt.want)
		}
	}
}
