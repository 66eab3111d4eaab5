//go:build privileged

package suites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/internal/unmount"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// badConfig is a configuration over the built runsc with places of its own.
func badConfig(t *testing.T) runsc.Config {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the privileged tests need root")
	}
	built, err := filepath.Abs("../bin/runsc")
	if err != nil {
		t.Fatal(err)
	}
	cfg := runsc.DefaultConfig()
	cfg.Runtime.Path, cfg.StateDir = built, filepath.Join(t.TempDir(), "state")
	cfg.CgroupParent = fmt.Sprintf("/tenwalls-bad-%d", os.Getpid())
	t.Cleanup(func() { // also when what should remove it is broken
		h, err := cgroup.Detect("/sys/fs/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		g, err := h.Open(cfg.CgroupParent)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(g.Kill(context.Background()), unmount.Below(context.Background(), cfg.StateDir), g.Remove(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

// broken is badConfig with a program that says it is runsc and does body when
// it is asked to run.
func broken(t *testing.T, body string) runsc.Config {
	t.Helper()
	cfg := badConfig(t)
	cfg.Runtime.Path = filepath.Join(t.TempDir(), "runsc")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && { echo runsc version broken; exit 0; }\n" + body + "\n"
	if err := os.WriteFile(cfg.Runtime.Path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// ground is what stands on the host that a run of cfg may have made.
func ground(t *testing.T, cfg runsc.Config) []string {
	t.Helper()
	var out []string
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, cfg.StateDir) {
			out = append(out, "mount "+strings.TrimSpace(line))
		}
	}
	for _, pattern := range []string{
		"/sys/fs/cgroup/*" + cfg.CgroupParent + "*", "/sys/fs/cgroup" + cfg.CgroupParent + "*",
		filepath.Join(cfg.StateDir, "harness/runs/*"), filepath.Join(cfg.StateDir, "jobs/*"),
	} {
		left, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, left...)
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs { // one that ends meanwhile is not left
		if data, err := os.ReadFile(p); err == nil && bytes.Contains(data, []byte(cfg.CgroupParent+"/")) {
			out = append(out, "process "+p)
		}
	}
	return out
}

func groundIsClear(t *testing.T, cfg runsc.Config) {
	t.Helper()
	if left := ground(t, cfg); len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

// inStep selects the principal route of one step, in whole walls.
func inStep(step int) func(*Trial) bool {
	return func(tr *Trial) bool { return tr.Attempt.Step == step && tr.Principal() }
}

// A runtime that cannot be one is an error, and the run makes no report.
func TestRunWithoutRuntime(t *testing.T) {
	missing := badConfig(t)
	missing.Runtime.Path = filepath.Join(t.TempDir(), "absent")
	hangs := broken(t, "")
	if err := os.WriteFile(hangs.Runtime.Path, []byte("#!/bin/sh\necho something else\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]runsc.Config{"no such file": missing, "is not runsc": hangs} {
		rep, err := Run(t.Context(), Options{Config: cfg, Version: "test"})
		if rep != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "runtime.path") {
			t.Errorf("%v, want %q", err, want)
		}
		groundIsClear(t, cfg)
	}
}

// A runtime that runs nothing shows nothing: no trial holds, each tells why,
// and nothing is qualified.
func TestRunOverBrokenRuntime(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"hangs", "exec sleep 300", ""},
		{"crashes", "echo the words of the runtime >&2; kill -SEGV $$", "segmentation fault"},
		{"fails", "echo the words of the runtime >&2; exit 128", "the words of the runtime"},
		{"claims success", "exit 0", "made no container"},
		{"leaves children", "setsid sleep 300 & exit 0", "made no container"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := broken(t, c.body)
			cfg.Limits.Wall = runsc.Duration(2 * time.Second)
			rep, err := Run(t.Context(), Options{Config: cfg, Version: "test", Select: func(tr *Trial) bool {
				return len(tr.cell.Lifts) == 0 && tr.Attempt.Step > 0 && tr.Attempt.Step < 9 && tr.Principal()
			}})
			if err != nil {
				t.Fatal(err)
			}
			if rep.Outcome == hostile.Qualified || len(rep.Trials) == 0 {
				t.Errorf("outcome %s of %d trials", rep.Outcome, len(rep.Trials))
			}
			for _, tr := range rep.Trials {
				if tr.Verdict == hostile.Held || tr.Reason == "" {
					t.Errorf("%s is %s under a runtime that runs nothing (%s)", tr.ID, tr.Verdict, tr.Reason)
				}
				if told := tr.Trouble + " " + tr.Reason; !strings.Contains(told, c.want) {
					t.Errorf("%s is %s and tells %q, want %q", tr.ID, tr.Verdict, told, c.want)
				}
			}
			groundIsClear(t, cfg)
		})
	}
}

// Two harnesses do not work in one state folder: the second is told so, and the
// first does not notice.
func TestSecondHarness(t *testing.T) {
	cfg := badConfig(t)
	var second error
	tried := false
	rep, err := Run(t.Context(), Options{Config: cfg, Version: "test", Select: inStep(1), Progress: func(p Progress) {
		if p.Stage == "making the attempts" {
			tried = true
			_, second = Run(t.Context(), Options{Config: cfg, Version: "test", Select: inStep(1)})
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !tried || second == nil || !strings.Contains(second.Error(), "another harness runs with this state_dir") {
		t.Errorf("the second harness: %v", second)
	}
	for _, tr := range rep.Trials {
		if tr.Verdict != hostile.Held {
			t.Errorf("%s", reports.Line(&tr))
		}
	}
	groundIsClear(t, cfg)
}

// An interruption ends the run early, with a report that says so.
func TestInterruptedRun(t *testing.T) {
	for _, stage := range []string{"showing that the observers see", "making the attempts"} {
		cfg := badConfig(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		rep, err := Run(ctx, Options{Config: cfg, Version: "test", Progress: func(p Progress) {
			if p.Stage == stage {
				cancel(fmt.Errorf("interrupted while %s", stage))
			}
		}})
		if err == nil {
			broken := slices.ContainsFunc(rep.Trials, func(tr reports.Trial) bool { return tr.Verdict == hostile.Broken })
			if !strings.Contains(rep.Interrupted, stage) || rep.Outcome != hostile.Unproven || !broken || len(rep.Trials) != len(Trials()) {
				t.Errorf("%s: interrupted %q, outcome %s, %d trials", stage, rep.Interrupted, rep.Outcome, len(rep.Trials))
			}
		} else if !strings.Contains(err.Error(), "interrupted") && !strings.Contains(err.Error(), "cancel") {
			t.Errorf("%s: %v", stage, err)
		}
		cancel(nil)
		groundIsClear(t, cfg)
	}
}

// A program in the runtime's place that hands on to the real one, with a flag
// more or with a hook in the bundle, is noticed: it lowers a wall that no attempt
// of the ten may reach. One that hands on and does nothing else qualifies nothing
// either: the digest in the report is not that of what ran.
func TestProgramInTheRuntimesPlace(t *testing.T) {
	real := badConfig(t).Runtime.Path
	for route, body := range map[string]string{
		"nothing":   `exec ` + real + ` "$@"`,
		"flags":     `exec ` + real + ` --host-uds=all --host-fifo=open "$@"`,
		"container": `for a in "$@"; do case $a in --bundle=*) sed -i 's#"root": {#"hooks": {"poststop": [{"path": "/bin/true"}]}, "root": {#' "${a#--bundle=}/config.json";; esac; done; exec ` + real + ` "$@"`,
	} {
		t.Run(route, func(t *testing.T) {
			cfg := broken(t, body)
			rep, err := Run(t.Context(), Options{Config: cfg, Version: "test", Select: func(tr *Trial) bool { return tr.Attempt == hostile.Boot }})
			if err != nil {
				t.Fatal(err)
			}
			for _, tr := range rep.Trials {
				want := hostile.Held
				if tr.Route == route {
					want = hostile.Fell
				}
				if tr.Verdict != want {
					t.Errorf("%s: %s: %s", tr.ID, tr.Verdict, tr.Reason)
				}
			}
			if route == "nothing" && (rep.Outcome != hostile.Unproven || !strings.Contains(rep.Unproven, "does not run the binary there but "+real)) {
				t.Errorf("%s: %s", rep.Outcome, rep.Unproven)
			}
			groundIsClear(t, cfg)
		})
	}
}

// The link counts for every job beside it, so the two cells that it is watched
// for do not sit at the same time.
func TestOneCellOnTheLinkAtATime(t *testing.T) {
	cfg := badConfig(t)
	rep, err := Run(t.Context(), Options{Config: cfg, Version: "test", Select: func(tr *Trial) bool {
		return tr.Principal() && (tr.Attempt == hostile.Connection || tr.Attempt == hostile.Metadata)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Trials) != 2 {
		t.Fatalf("%d trials", len(rep.Trials))
	}
	a, b := rep.Trials[0], rep.Trials[1]
	ended := func(tr reports.Trial) time.Time {
		return tr.Started.Add(time.Duration(tr.DurationMS) * time.Millisecond)
	}
	if a.Started.Before(ended(b)) && b.Started.Before(ended(a)) {
		t.Errorf("%s sat from %s to %s, %s from %s to %s", a.ID, a.Started, ended(a), b.ID, b.Started, ended(b))
	}
}
