//go:build privileged

package cgroup

import (
	"errors"
	"fmt"
	"io"
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

// kernelLog reads what the kernel says from now on (/dev/kmsg; one record a
// read).
func kernelLog(t *testing.T) func() string {
	t.Helper()
	fd, err := syscall.Open("/dev/kmsg", syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if _, err := syscall.Seek(fd, 0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	return func() string {
		buf := make([]byte, 8<<10)
		for {
			n, err := syscall.Read(fd, buf)
			if errors.Is(err, syscall.EPIPE) { // some were overwritten before they were read
				continue
			}
			if err != nil {
				return said.String()
			}
			said.Write(buf[:n])
		}
	}
}

// A group without any limit of its own, below a guard, is stopped by the
// guard's: it alone is killed, and the kernel says whose limit and whose task
// it was.
func TestGuardBoundsWhatHasNoLimit(t *testing.T) {
	g := gomega.NewWithT(t)
	h := real(t)
	guard, err := h.Guard(parent(t, h)+"/guard", Limits{MemoryBytes: 64 << 20, PIDs: 40})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	open, err := h.Create(guard.path+"/open", Limits{SwapBytes: -1})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	beside, err := h.Create(guard.path+"/beside", Limits{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(open.MemoryLimit()).To(gomega.Equal(Unlimited))
	g.Expect(open.PIDsLimit()).To(gomega.Equal(Unlimited))

	quiet := exec.Command("/bin/sleep", "1000")
	g.Expect(beside.Start(quiet)).To(gomega.Succeed())
	t.Cleanup(func() { _, _ = quiet.Process.Kill(), quiet.Wait() })

	// The kernel limits its records, and others on the machine may use them up:
	// then it is asked once more.
	said := kernelLog(t)
	record := fmt.Sprintf("oom_memcg=%s,task_memcg=%s,", guard.path, open.path)
	hogs := int64(0)
	g.Eventually(func() string {
		hogs++
		hog, _ := child("hog")
		g.Expect(open.Start(hog)).To(gomega.Succeed())
		g.Expect(hog.Wait()).To(gomega.MatchError("signal: killed"))
		return said()
	}, 30*time.Second, time.Second).Should(gomega.ContainSubstring(record))

	g.Eventually(open.OOMKills).Should(gomega.BeNumerically(">=", hogs))
	g.Expect(beside.OOMKills()).To(gomega.BeZero())
	g.Expect(beside.Procs()).To(gomega.Equal([]int{quiet.Process.Pid}), "the neighbour goes on")
	g.Expect(guard.MemoryPeak()).To(gomega.And(gomega.BeNumerically(">", 60<<20), gomega.BeNumerically("<=", 64<<20+1<<18)), "the limit, and what the kernel charges by force")
}

// The tasks of all groups below count together.
func TestGuardBoundsTasks(t *testing.T) {
	g := gomega.NewWithT(t)
	h := real(t)
	guard, err := h.Guard(parent(t, h)+"/guard", Limits{MemoryBytes: 64 << 20, PIDs: 6})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var groups []*Group
	for _, name := range []string{"/a", "/b"} {
		below, err := h.Create(guard.path+name, Limits{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		groups = append(groups, below)
	}
	started := 0
	for ; started < 10; started++ {
		cmd := exec.Command("/bin/sleep", "1000")
		if err = groups[started%2].Start(cmd); err != nil {
			break
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	}
	g.Expect(err).To(gomega.MatchError(syscall.EAGAIN))
	room := 6
	if h.version == 1 {
		room = 5 // the thread that starts the child takes the last
	}
	g.Expect(started).To(gomega.Equal(room))
	g.Expect(guard.PIDs()).To(gomega.BeEquivalentTo(room))
}

func TestGuardIsReadBack(t *testing.T) {
	g := gomega.NewWithT(t)
	h := real(t)
	path := parent(t, h) + "/guard"
	want := Limits{MemoryBytes: 64 << 20, PIDs: 40}
	guard, err := h.Guard(path, want)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(guard.MemoryLimit()).To(gomega.BeEquivalentTo(64 << 20))
	g.Expect(guard.PIDsLimit()).To(gomega.BeEquivalentTo(40))
	if swap, err := guard.SwapLimit(); !errors.Is(err, ErrNotAccounted) {
		g.Expect(swap, err).To(gomega.BeZero())
	}
	if h.version == 2 {
		on, err := os.ReadFile(filepath.Join(guard.dirs()[0], "cgroup.subtree_control"))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(strings.Fields(string(on))).To(gomega.ContainElements("memory", "pids"))
		g.Expect(os.ReadFile(guard.file("memory", "memory.oom.group"))).To(gomega.BeEquivalentTo("0\n"), "the run does not die with one job")
	} else {
		g.Expect(os.ReadFile(guard.file("memory", "memory.use_hierarchy"))).To(gomega.BeEquivalentTo("1\n"))
	}
	// Somebody changes it behind our back.
	g.Expect(guard.inForce(want)).To(gomega.Succeed())
	g.Expect(guard.limit(Limits{MemoryBytes: 32 << 20, PIDs: 50})).To(gomega.Succeed())
	g.Expect(guard.inForce(want)).To(gomega.MatchError(gomega.And(
		gomega.ContainSubstring("memory limit in force is"), gomega.ContainSubstring("pids limit in force is 50, not 40"))))
	_, err = h.Guard(path, want)
	g.Expect(err).To(gomega.MatchError(fs.ErrExist))
}
