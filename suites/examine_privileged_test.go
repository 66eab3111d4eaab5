//go:build privileged

package suites

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/internal/unmount"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
)

// A part that cannot be made is told, blinds who looks at it, and nobody else;
// and nothing is left of the rest.
func TestExamineWithoutImage(t *testing.T) {
	cfg := badConfig(t)
	cfg.Image = filepath.Join(t.TempDir(), "absent")
	x, err := Examine(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range x.Parts {
		if missing := p.Name == PartImage; missing != (p.Err != nil) {
			t.Errorf("%s: %q, %v", p.Name, p.Seen, p.Err)
		}
	}
	if want := 7; len(x.Parts) != want {
		t.Errorf("%d parts, want %d", len(x.Parts), want)
	}
	for _, c := range x.Controls {
		if blind := c.Observer == "canary"; blind == c.Passed {
			t.Errorf("%+v", c)
		}
	}
	if len(x.Controls) < 16 || !slices.IsSortedFunc(x.Controls, func(a, b observers.Control) int { return strings.Compare(a.Observer, b.Observer) }) {
		t.Errorf("%d controls: %+v", len(x.Controls), x.Controls)
	}
	groundIsClear(t, cfg)
}

// A state folder without room is told as that, and nothing else is tried.
func TestExamineAFullFolder(t *testing.T) {
	cfg := badConfig(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unmount.Below(context.Background(), dir); err != nil { // it waits while it is in use
			t.Error(err)
		}
	})
	for _, used := range []int{0, 256 << 10} { // so that the journal can be written, and cannot
		write(t, filepath.Join(dir, "fill"), "")
		if f, err := os.OpenFile(filepath.Join(dir, "fill"), os.O_WRONLY, 0); err == nil {
			_, _ = f.Write(make([]byte, used)) // until it is full
			_ = f.Close()
		}
		cfg.StateDir = filepath.Join(dir, "state")
		x, err := Examine(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Parts) != 1 || x.Parts[0].Name != PartFolder || x.Parts[0].Err == nil || len(x.Controls) > 0 {
			t.Errorf("%+v", x)
		}
		groundIsClear(t, cfg)
	}
}

// Cgroups of a run go with it also where its journal could not be written.
func TestStrikeRemovesUnnotedGroups(t *testing.T) {
	cfg := badConfig(t)
	s, err := enter(cfg, errand{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.cgroups.Create(s.helpers(), cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := s.strike(); err != nil {
		t.Error(err)
	}
	groundIsClear(t, cfg)
}

// Where a harness runs, nobody examines, and it is not disturbed.
func TestExamineBesideAHarness(t *testing.T) {
	cfg := badConfig(t)
	h, err := cgroup.Detect("/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	shop, err := openWorkshop(cfg.StateDir, h)
	if err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(shop.runs(), "run_1", "journal")
	write(t, run, "")
	x, err := Examine(t.Context(), cfg)
	if err != nil || len(x.Controls) > 0 || len(x.Parts) != 1 || x.Parts[0].Name != PartFolder ||
		x.Parts[0].Err == nil || !strings.Contains(x.Parts[0].Err.Error(), "another harness runs") {
		t.Errorf("%+v, %v", x, err)
	}
	if !there(run) {
		t.Error("the running harness lost its folder")
	}
	if err := shop.close(); err != nil {
		t.Error(err)
	}
}

// Somebody else takes more of a disk than a job may, while it runs: the job is made
// again, and only what happens to it each time counts.
func TestOthersTakeOfTheDisk(t *testing.T) {
	cfg := badConfig(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan error, 1)
	go func() {
		for ctx.Err() == nil && !jobRuns(cfg) {
			time.Sleep(time.Millisecond) // there is no event for it
		}
		f, err := os.Create(filepath.Join(dir, "others"))
		if err == nil {
			err = errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, 4*int64(cfg.Limits.Scratch)), f.Close())
		}
		taken <- err
	}()
	rep, err := Run(t.Context(), Options{Config: cfg, Select: func(tr *Trial) bool { return tr.Attempt == hostile.Disk && tr.Route == "large-artifact" }})
	cancel()
	if err := errors.Join(err, <-taken); err != nil {
		t.Fatal(err)
	}
	tr := rep.Trials[0]
	i := slices.IndexFunc(tr.Observations, func(o observers.Observation) bool { return o.Observer == "space" })
	if tr.Verdict != hostile.Held || i < 0 || !strings.Contains(strings.Join(tr.Observations[i].Found, " "), "made again, the 1. time: others took") {
		t.Errorf("%s: %s: %+v", tr.Verdict, tr.Reason, tr.Observations)
	}
	groundIsClear(t, cfg)
}

// jobRuns tells whether a process of some job is in its cgroup: then everything is
// armed that watches it.
func jobRuns(cfg runsc.Config) bool {
	for _, tree := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids"} {
		files, err := filepath.Glob(tree + cfg.CgroupParent + "/run_*/*job_*/cgroup.procs")
		if err != nil {
			return false
		}
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
				return true
			}
		}
	}
	return false
}
