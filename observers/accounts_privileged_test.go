//go:build privileged

package observers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"tenwalls.dev/harness/internal/cgroup"
)

// runPrefix is a run's cgroup on the real machine, removed at the end.
func runPrefix(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("privileged tests need root")
	}
	tree, err := cgroup.Detect(Local().Cgroup)
	if err != nil {
		t.Fatal(err)
	}
	g, err := tree.Create(fmt.Sprintf("/tenwalls-observers-%d-%d", os.Getpid(), throwaways.Add(1)), cgroup.Limits{SwapBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} { // version 2, version 1
			entries, err := filepath.Glob(root + g.Path() + "/control-*")
			if err != nil || len(entries) > 0 {
				t.Errorf("controls left %v, %v", entries, err)
			}
		}
		if err := clearGroup(context.Background(), g); err != nil {
			t.Error(err)
		}
	})
	return g.Path()
}

func TestControlsPassHere(t *testing.T) {
	h := Local()
	prefix := runPrefix(t)
	s := reexec{h}
	for _, o := range []Observer{
		NewProcessor(h, prefix, s), NewMemory(h, prefix, s), NewOOM(h, prefix, s),
		NewBystander(h, s), NewTasks(h, prefix, s), NewProcesses(h, prefix, s), NewBoot(h, prefix, s),
	} {
		t.Run(o.Name(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			started := time.Now()
			c := o.Control(ctx)
			t.Logf("%v: %+v", time.Since(started), c)
			if !c.Passed {
				t.Error(c.Reason)
			}
		})
	}
}

// job starts one child in a group of its own below prefix.
func job(t *testing.T, prefix, act string, l cgroup.Limits) (*cgroup.Group, func() *os.Process) {
	t.Helper()
	tree, err := cgroup.Detect(Local().Cgroup)
	if err != nil {
		t.Fatal(err)
	}
	g, err := tree.Create(fmt.Sprintf("%s/job-%d", prefix, throwaways.Add(1)), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clearGroup(context.Background(), g); err != nil {
			t.Error(err)
		}
	})
	return g, func() *os.Process {
		p, err := reexec{Local()}.Spawn(t.Context(), Child{Cgroup: g.Path(), Act: act, Args: []string{"job-mark"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { reap(p) })
		return p
	}
}

func TestOOMIsAttributed(t *testing.T) {
	g := NewWithT(t)
	h, prefix := Local(), runPrefix(t)
	ours, start := job(t, prefix, ActHog, cgroup.Limits{MemoryBytes: 16 << 20})
	sibling, _ := job(t, prefix, ActHog, cgroup.Limits{})
	o := NewOOM(h, prefix, reexec{h})
	own, err := o.Watch(t.Context(), Subject{Place: "own", Cgroup: ours.Path()})
	g.Expect(err).NotTo(HaveOccurred())
	beside, err := o.Watch(t.Context(), Subject{Place: "beside", Cgroup: sibling.Path()})
	g.Expect(err).NotTo(HaveOccurred())
	// The same kill is elsewhere to a run with another prefix.
	other, err := NewOOM(h, "/another-run", reexec{h}).Watch(t.Context(), Subject{Place: "other", Cgroup: sibling.Path()})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = start().Wait()
	g.Expect(err).NotTo(HaveOccurred())
	for w, want := range map[Watch]map[string]int64{
		own:    {"own": 1, "above": 0},
		beside: {"own": 0, "above": 0, "events": 0},
		other:  {"own": 0, "above": 0, "events": 0},
	} {
		w.Sample()
		w.Ended()
		obs := w.Stored()
		g.Expect(obs.Lost).To(BeEmpty())
		for name, n := range want {
			g.Expect(obs.Values[name].After).To(Equal(n), "%s %s: %+v", obs.Place, name, obs)
		}
		// The machine may have other victims at the same time.
		g.Expect(obs.Found).NotTo(ContainElement(ContainSubstring("cgroup " + ours.Path() + " ran out")))
		if w == own {
			// Version 2 may count a group's first victim twice.
			g.Expect(obs.Values["events"].After).To(Or(BeEquivalentTo(1), BeEquivalentTo(2)))
		}
		if w == other {
			g.Expect(obs.Values["elsewhere"].After).To(BeNumerically(">=", 1))
		}
	}
}

func TestOOMOfAnOuterGuardIsAbove(t *testing.T) {
	g := NewWithT(t)
	h, prefix := Local(), runPrefix(t)
	guard, _ := job(t, prefix, ActHog, cgroup.Limits{MemoryBytes: 16 << 20})
	inner, start := job(t, guard.Path(), ActHog, cgroup.Limits{})
	w, err := NewOOM(h, prefix, reexec{h}).Watch(t.Context(), Subject{Cgroup: inner.Path()})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = start().Wait()
	g.Expect(err).NotTo(HaveOccurred())
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Values["above"].After).To(BeEquivalentTo(1))
	g.Expect(obs.Values["own"].After).To(BeZero())
}

func TestGaugesOverARealJob(t *testing.T) {
	g := NewWithT(t)
	h, prefix := Local(), runPrefix(t)
	ours, start := job(t, prefix, ActHold, cgroup.Limits{MemoryBytes: 64 << 20, PIDs: 64})
	var watches []Watch
	for _, o := range []Observer{NewProcessor(h, prefix, nil), NewMemory(h, prefix, nil), NewTasks(h, prefix, nil)} {
		w, err := o.Watch(t.Context(), Subject{Cgroup: ours.Path()})
		g.Expect(err).NotTo(HaveOccurred())
		watches = append(watches, w)
	}
	p := start()
	g.Eventually(ours.MemoryUsage).Should(BeNumerically(">=", 8<<20))
	for _, w := range watches {
		w.Sample()
	}
	reap(p)
	values := map[string]Reading{}
	for _, w := range watches {
		w.Ended()
		obs := w.Stored()
		g.Expect(obs.Lost).To(BeEmpty())
		for name, r := range obs.Values {
			values[obs.Observer+" "+name] = r
		}
	}
	t.Logf("%+v", values)
	g.Expect(values["processor usage"].Before).To(BeZero())
	g.Expect(values["processor usage"].After).To(BeNumerically(">", 0))
	g.Expect(values["memory usage"].Worst).To(BeNumerically(">=", 8<<20))
	g.Expect(values["memory peak"].After).To(BeNumerically(">=", 8<<20))
	g.Expect(values["tasks tasks"].Worst).To(BeNumerically(">=", 2))
	g.Expect(values["tasks tasks"].After).To(BeZero())
	g.Expect(values["memory swap"].Worst).To(BeZero())
}

func TestProcessLeftBehindIsFoundAfterItEscaped(t *testing.T) {
	g := NewWithT(t)
	h, prefix := Local(), runPrefix(t)
	ours, start := job(t, prefix, ActSleep, cgroup.Limits{})
	w, err := NewProcesses(h, prefix, nil).Watch(t.Context(), Subject{Cgroup: ours.Path(), Container: "job-mark"})
	g.Expect(err).NotTo(HaveOccurred())
	p := start()
	w.Sample()
	// It leaves the cgroup in every tree and is stopped: it stays known.
	dirs, err := filepath.Glob("/sys/fs/cgroup/cgroup.procs") // version 2
	if len(dirs) == 0 {
		dirs, err = filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	}
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(dirs).NotTo(BeEmpty())
	for _, dir := range dirs {
		if err := os.WriteFile(dir, []byte(fmt.Sprint(p.Pid)), 0); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			t.Fatal(err)
		}
	}
	g.Expect(p.Signal(syscall.SIGSTOP)).To(Succeed())
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Values["in_cgroup"]).To(Equal(Reading{Worst: 1, Unit: "processes"}))
	g.Expect(obs.Values["descendants"].After).To(BeEquivalentTo(1))
	g.Expect(obs.Values["by_files"].After).To(BeEquivalentTo(1))
	g.Expect(obs.Found).To(ConsistOf(And(ContainSubstring(fmt.Sprint(p.Pid)), ContainSubstring("known as the job's"), ContainSubstring("cmdline names job-mark"))))
}

// Where the kernel has written all its records, the control waits for the next
// window and sees there.
func TestOOMControlBeyondTheRateLimit(t *testing.T) {
	g := NewWithT(t)
	h, prefix := Local(), runPrefix(t)
	o := NewOOM(h, prefix, reexec{h})
	for range 3 { // a window may end just before the control
		exhaust(t, o, prefix)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		c := o.Control(ctx)
		cancel()
		t.Logf("%+v", c)
		g.Expect(c.Passed).To(BeTrue(), c.Reason)
		if strings.Contains(c.Seen, "the second time") {
			return
		}
	}
	t.Error("no control met the rate limit, so this shows nothing")
}

// exhaust kills until a record is left out.
func exhaust(t *testing.T, o *OOM, prefix string) {
	t.Helper()
	for range 4 * oomBurst {
		ours, start := job(t, prefix, ActHog, cgroup.Limits{MemoryBytes: 16 << 20})
		w, err := o.Watch(t.Context(), Subject{Cgroup: ours.Path()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := start().Wait(); err != nil {
			t.Fatal(err)
		}
		w.Ended()
		obs := w.Stored()
		if obs.Lost != "" {
			if !strings.Contains(obs.Lost, "rate limit") {
				t.Fatal(obs.Lost)
			}
			return
		}
		if obs.Values["own"].After != 1 {
			t.Fatalf("neither seen nor lost: %+v", obs)
		}
	}
	t.Fatal("the kernel wrote every record")
}
