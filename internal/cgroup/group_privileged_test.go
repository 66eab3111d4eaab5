//go:build privileged

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("privileged tests need root")
	}
}

// real returns the machine's own hierarchy, whichever version it is.
func real(t *testing.T) *Hierarchy {
	t.Helper()
	needRoot(t)
	h, err := Detect("/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// unified returns a version 2 tree without controllers where a hybrid machine
// mounts one: placing, killing and removing are the real kernel's there too.
func unified(t *testing.T) *Hierarchy {
	t.Helper()
	needRoot(t)
	root := "/sys/fs/cgroup/unified"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		root = "/sys/fs/cgroup"
	}
	return &Hierarchy{version: 2, trees: []tree{{root: root}}}
}

// parent makes a parent group of this test's own and clears it at the end.
func parent(t *testing.T, h *Hierarchy) string {
	t.Helper()
	p := fmt.Sprintf("/tenwalls-test-%d/%s", os.Getpid(), strings.ToLower(filepath.Base(t.Name())))
	t.Cleanup(func() {
		g, _ := h.Open(filepath.Dir(p))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(g.Kill(ctx), g.Remove(ctx)); err != nil {
			t.Error(err)
		}
	})
	return p
}

func create(t *testing.T, h *Hierarchy, l Limits) *Group {
	t.Helper()
	g, err := h.Create(parent(t, h)+"/job", l)
	if err == nil {
		return g
	}
	t.Fatal(err)
	return nil
}

func both(t *testing.T, f func(t *testing.T, h *Hierarchy)) {
	t.Run("real", func(t *testing.T) { f(t, real(t)) })
	t.Run("unified", func(t *testing.T) { f(t, unified(t)) })
}

func TestChildStartsInsideTheGroup(t *testing.T) {
	both(t, func(t *testing.T, h *Hierarchy) {
		g := gomega.NewWithT(t)
		group := create(t, h, Limits{})
		cmd, out := child("where")
		g.Expect(group.Start(cmd)).To(gomega.Succeed())
		g.Expect(cmd.Wait()).To(gomega.Succeed())
		for _, tr := range h.trees {
			for _, c := range tr.controllers {
				g.Expect(out.String()).To(gomega.MatchRegexp(`(?m)^\d+:([a-z,]*,)?%s(,[a-z,]*)?:%s$|^0::%s$`, c, group.path, group.path))
			}
		}
		g.Expect(out.String()).To(gomega.ContainSubstring(":" + group.path + "\n"))
		// The harness itself must not be left inside.
		self, err := filepath.Glob("/proc/self/task/*/cgroup")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		for _, name := range self {
			where, err := os.ReadFile(name)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
				continue
			}
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(string(where)).NotTo(gomega.ContainSubstring(group.path))
		}
	})
}

func TestKillAndRemoveLeaveNothing(t *testing.T) {
	both(t, func(t *testing.T, h *Hierarchy) {
		g := gomega.NewWithT(t)
		group := create(t, h, Limits{})
		cmd, _ := child("5")
		g.Expect(group.Start(cmd)).To(gomega.Succeed())
		want := 6
		below, err := h.Create(group.path+"/below", Limits{})
		if h.version == 2 && len(h.trees[0].controllers) > 0 { // its parent holds processes now
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("holds processes itself")))
		} else {
			g.Expect(err).NotTo(gomega.HaveOccurred())
			stopped := exec.Command("/bin/sleep", "1000")
			g.Expect(below.Start(stopped)).To(gomega.Succeed())
			g.Expect(stopped.Process.Signal(syscall.SIGSTOP)).To(gomega.Succeed())
			go func() { _ = stopped.Wait() }()
			want = 7
		}
		go func() { _ = cmd.Wait() }()
		g.Eventually(group.Procs).Should(gomega.HaveLen(want))
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		started := time.Now()
		g.Expect(group.Kill(ctx)).To(gomega.Succeed())
		t.Logf("kill of %d took %v", want, time.Since(started))
		g.Expect(group.Procs()).To(gomega.BeEmpty())
		started = time.Now()
		g.Expect(group.Remove(ctx)).To(gomega.Succeed())
		t.Logf("remove took %v", time.Since(started))
		for _, dir := range group.dirs() {
			g.Expect(dir).NotTo(gomega.BeADirectory())
		}
		g.Expect(group.Kill(ctx)).To(gomega.Succeed(), "a group that is gone")
		g.Expect(group.Remove(ctx)).To(gomega.Succeed(), "a group that is gone")
	})
}

func TestAccountsOfTheRealKernel(t *testing.T) {
	g := gomega.NewWithT(t)
	h := real(t)
	group := create(t, h, Limits{MemoryBytes: 64 << 20, PIDs: 20})
	g.Expect(group.MemoryLimit()).To(gomega.BeEquivalentTo(64 << 20))
	g.Expect(group.PIDsLimit()).To(gomega.BeEquivalentTo(20))
	swap, err := group.SwapLimit()
	g.Expect(errors.Is(err, ErrNotAccounted) || err == nil && swap == 0).To(gomega.BeTrue())

	cmd, _ := child("spin")
	g.Expect(group.Start(cmd)).To(gomega.Succeed())
	g.Expect(cmd.Wait()).To(gomega.Succeed())
	spent, err := group.ProcessorTime()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	used := cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
	t.Logf("accounted %v, rusage %v", spent, used)
	g.Expect(spent).To(gomega.BeNumerically("~", used, 10*time.Millisecond))

	g.Expect(group.OOMKills()).To(gomega.BeZero())
	hog, _ := child("hog")
	g.Expect(group.Start(hog)).To(gomega.Succeed())
	g.Expect(hog.Wait()).To(gomega.MatchError("signal: killed"))
	g.Eventually(group.OOMKills).Should(gomega.BeNumerically(">=", 1))
	g.Expect(group.OOMKills()).To(gomega.BeNumerically("<=", h.version), "version 2 may count it twice")
	g.Expect(group.MemoryPeak()).To(gomega.And(gomega.BeNumerically(">", 60<<20), gomega.BeNumerically("<=", 64<<20+1<<18)), "the limit, and what the kernel charges by force")
}

func TestPIDsAreCountedAndRefused(t *testing.T) {
	g := gomega.NewWithT(t)
	group := create(t, real(t), Limits{PIDs: 4})
	room := 4
	if group.h.version == 1 {
		room = 3 // the thread that starts the child takes the fourth
	}
	for i := range room + 1 {
		cmd := exec.Command("/bin/sleep", "1000")
		err := group.Start(cmd)
		if i == room {
			g.Expect(err).To(gomega.MatchError(syscall.EAGAIN))
			break
		}
		g.Expect(err).NotTo(gomega.HaveOccurred())
		t.Cleanup(func() { _ = cmd.Wait() })
		t.Cleanup(func() { _ = cmd.Process.Kill() })
	}
	g.Expect(group.PIDs()).To(gomega.BeEquivalentTo(room))
	peak, err := group.PIDsPeak()
	g.Expect(errors.Is(err, ErrNotAccounted) || peak == 4).To(gomega.BeTrue())
	t.Logf("pids.peak %d, %v", peak, err)
	g.Expect(group.PIDsRefused()).To(gomega.BeEquivalentTo(1))
}

func TestOnlyTheChildIsCountedAfterStart(t *testing.T) {
	g := gomega.NewWithT(t)
	group := create(t, real(t), Limits{})
	for i := range 40 {
		cmd := exec.Command("/bin/sleep", "1000")
		g.Expect(group.Start(cmd)).To(gomega.Succeed())
		n, err := group.PIDs() // at once: the thread that started it must be gone
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(n).To(gomega.BeEquivalentTo(i + 1))
	}
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	g := gomega.NewWithT(t)
	h := real(t)
	p := parent(t, h)
	_, err := h.Create(p+"/a/b", Limits{PIDs: 1 << 40})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("pids.max")))
	for _, tr := range h.trees {
		g.Expect(filepath.Join(tr.root, filepath.Dir(p))).NotTo(gomega.BeADirectory())
	}
	_, err = h.Create(p+"/a", Limits{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = h.Create(p+"/a", Limits{})
	g.Expect(err).To(gomega.MatchError(fs.ErrExist))
	for _, tr := range h.trees {
		g.Expect(filepath.Join(tr.root, p, "a")).To(gomega.BeADirectory(), "another's group stays")
	}
}

func TestRemoveHasABound(t *testing.T) {
	both(t, func(t *testing.T, h *Hierarchy) {
		g := gomega.NewWithT(t)
		group := create(t, h, Limits{})
		cmd := exec.Command("/bin/sleep", "1000")
		g.Expect(group.Start(cmd)).To(gomega.Succeed())
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		g.Expect(group.Remove(ctx)).To(gomega.And(
			gomega.MatchError(context.DeadlineExceeded), gomega.MatchError(syscall.EBUSY)), "it holds a process")
		g.Expect(group.Procs()).To(gomega.Equal([]int{cmd.Process.Pid}))
	})
}

func TestControllersThatAreNotThere(t *testing.T) {
	g := gomega.NewWithT(t)
	group := create(t, unified(t), Limits{})
	err := enable(group.dirs()[0], []string{"cpuset", "rdma", "hugetlb"})
	g.Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring("delegate them"), gomega.ContainSubstring(group.dirs()[0]))))
}

func BenchmarkStart(b *testing.B) {
	benchStart(b, func(g *Group, cmd *exec.Cmd) (func(), error) { return func() {}, g.Start(cmd) })
}

func BenchmarkStartTied(b *testing.B) {
	benchStart(b, func(g *Group, cmd *exec.Cmd) (func(), error) { return g.StartTied(nil, cmd) })
}

func benchStart(b *testing.B, start func(*Group, *exec.Cmd) (func(), error)) {
	h, err := Detect("/sys/fs/cgroup")
	if err != nil {
		b.Fatal(err)
	}
	group, err := h.Create(fmt.Sprintf("/tenwalls-bench-%d", os.Getpid()), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = group.Remove(context.Background()) })
	for b.Loop() {
		cmd := exec.Command("/bin/true")
		untie, err := start(group, cmd)
		if err != nil {
			b.Fatal(err)
		}
		_ = cmd.Wait()
		untie()
	}
}
