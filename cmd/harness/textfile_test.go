package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
	"tenwalls.dev/harness/suites"
)

// once is a run of that report, noted and told, with its report in a folder of
// its own. It returns the metrics.
func once(t *testing.T, state string, r *reports.Report) string {
	t.Helper()
	n, err := begin(state, "schedule")
	if err != nil {
		t.Fatal(err)
	}
	r.Run, r.Started = n.entry.Run, time.Now().UTC()
	n.judged(r)
	f := runFlags{out: filepath.Join(t.TempDir(), "out"), validFor: time.Hour}
	key, err := signer(f, state)
	if err != nil {
		t.Fatal(err)
	}
	cfg := runsc.DefaultConfig()
	cfg.StateDir = state
	w, err := write(r, f, cfg, key)
	if err != nil {
		t.Fatal(err)
	}
	n.wrote(f.out, w)
	return finishedAndTold(t, n)
}

func TestTextfileTellsOfTheRunAndOfDrift(t *testing.T) {
	state := t.TempDir()
	runtime := filepath.Join(state, "runsc")
	first := madeUp(runtime)
	first.InForce = map[string]string{"cgroup: memory limit": "268435456"}
	got := once(t, state, first)
	for _, want := range []string{
		`tenwalls_run_outcome{outcome="qualified"} 1`, `tenwalls_attempt_verdict{attempt="memory",verdict="held"} 1`,
		`tenwalls_runs_total{outcome="qualified",reason="schedule"} 1`, `tenwalls_attestation_expires_timestamp_seconds `,
		fmt.Sprintf(`tenwalls_routes{verdict="held"} %d`, len(suites.Trials())),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "tenwalls_drift_differences") {
		t.Error("drift is told and there was nothing to compare with")
	}
	second := madeUp(runtime)
	second.InForce = map[string]string{"cgroup: memory limit": "9223372036854775807"}
	if got := once(t, state, second); !strings.Contains(got, "tenwalls_drift_differences 1") {
		t.Errorf("no drift in:\n%s", got)
	}
	third := madeUp(runtime)
	third.InForce = second.InForce
	third.Trials[0].Trouble = "the runner did not start"
	third.Trials[0] = suites.Judge(third.Trials[0])
	third.Outcome = suites.Outcome(third.Trials)
	got = once(t, state, third)
	for _, want := range []string{
		`tenwalls_run_outcome{outcome="unproven"} 1`, `tenwalls_attempt_verdict{attempt="credentials",verdict="broken"} 1`, "tenwalls_drift_differences 0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}

	// What came to nothing tells nothing of the attempts of an earlier run.
	for want, end := range map[string]func(n *note){
		`tenwalls_run_outcome{outcome="unproven"} 1`: func(n *note) {
			n.judged(madeUp(runtime))
			_ = n.failed(errors.New("--out: no space left on device"))
		},
		`tenwalls_run_outcome{outcome="interrupted"} 1`: func(n *note) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("interrupted by SIGTERM"))
			n.interrupted(ctx)
		},
	} {
		n, err := begin(state, "schedule")
		if err != nil {
			t.Fatal(err)
		}
		end(n)
		if got := finishedAndTold(t, n); !strings.Contains(got, want) || strings.Contains(got, "tenwalls_attempt_verdict") {
			t.Errorf("no %s, or attempts, in:\n%s", want, got)
		}
	}
}

func finishedAndTold(t *testing.T, n *note) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tenwalls.prom")
	if err := errors.Join(n.finish(), n.tell(file)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
