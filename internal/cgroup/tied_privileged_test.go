//go:build privileged

package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// A tied child ends in the moment in which its starter is killed; one that is
// only started goes on, which is what the tie is for.
func TestTiedChildEndsWithItsStarter(t *testing.T) {
	both(t, func(t *testing.T, h *Hierarchy) {
		g := gomega.NewWithT(t)
		group := create(t, h, Limits{})
		root := "/sys/fs/cgroup"
		if h.version == 2 {
			root = h.trees[0].root
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=tie %s %d %s", actVar, root, h.version, group.path))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(cmd.Start()).To(gomega.Succeed())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		var child int
		_, err = fmt.Fscan(bufio.NewReader(out), &child)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(group.Procs()).To(gomega.Equal([]int{child}))
		if len(h.trees[0].controllers) > 0 { // the starter's thread is no task of the group's
			g.Expect(group.PIDs()).To(gomega.BeEquivalentTo(1))
		}
		began := time.Now()
		g.Expect(cmd.Process.Kill()).To(gomega.Succeed())
		g.Eventually(group.Procs, 2*time.Second, time.Millisecond).Should(gomega.BeEmpty())
		t.Logf("gone after %v", time.Since(began))
		_ = cmd.Wait()
	})
}

// The tie is the one thread: no other thread of the program that ends cuts it,
// and while it is there it is in no group but the program's own.
func TestTieHoldsUntilItIsCut(t *testing.T) {
	both(t, func(t *testing.T, h *Hierarchy) {
		g := gomega.NewWithT(t)
		group := create(t, h, Limits{})
		cmd := exec.Command("/bin/sleep", "1000")
		untie, err := group.StartTied(nil, cmd)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		t.Cleanup(untie)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for range 50 { // threads that end
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread()
			}()
			<-done
		}
		g.Consistently(ended, 100*time.Millisecond, 10*time.Millisecond).ShouldNot(gomega.Receive())
		threads, err := filepath.Glob("/proc/self/task/*/cgroup")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		for _, name := range threads {
			where, err := os.ReadFile(name)
			if err == nil {
				g.Expect(string(where)).NotTo(gomega.ContainSubstring(group.path))
			}
		}
		untie()
		untie()
		g.Eventually(ended, 2*time.Second).Should(gomega.Receive(gomega.MatchError("signal: killed")))
	})
}

func TestTiedStartThatFails(t *testing.T) {
	both(t, func(t *testing.T, h *Hierarchy) {
		g := gomega.NewWithT(t)
		group := create(t, h, Limits{})
		no := errors.New("no")
		_, err := group.StartTied(func() error { return no }, exec.Command("/bin/true"))
		g.Expect(err).To(gomega.MatchError(no))
		_, err = group.StartTied(nil, exec.Command("/nonexistent"))
		g.Expect(err).To(gomega.MatchError(os.ErrNotExist))
		gone, err := h.Open(filepath.Dir(group.path) + "/gone")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		_, err = gone.StartTied(nil, exec.Command("/bin/true"))
		g.Expect(err).To(gomega.MatchError(os.ErrNotExist))
		// The threads that tried have ended: nothing holds the group.
		for _, dir := range group.dirs() {
			g.Eventually(func() error { return syscall.Rmdir(dir) }, time.Second, time.Millisecond).Should(gomega.Succeed())
		}
	})
}

func TestPdeathsigIsRefused(t *testing.T) {
	both(t, func(t *testing.T, h *Hierarchy) {
		g := gomega.NewWithT(t)
		group := create(t, h, Limits{})
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		g.Expect(group.Start(cmd)).To(gomega.MatchError(gomega.ContainSubstring("use StartTied")))
		g.Expect(cmd.Process).To(gomega.BeNil())
	})
}

// Where a container shows a path that is not mounted, the thread goes back to
// the root of what is.
func TestHomeInAContainer(t *testing.T) {
	g := gomega.NewWithT(t)
	root := t.TempDir()
	h := &Hierarchy{version: 1, trees: []tree{{root: root, controllers: []string{"pids"}}}}
	data, err := os.ReadFile("/proc/thread-self/cgroup")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	if !strings.Contains(string(data), "pids") {
		data = nil // version 2 only: there is no such tree to be at home in
	}
	home, err := h.home()
	if data == nil {
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("no line for pids")))
		return
	}
	g.Expect(err).NotTo(gomega.HaveOccurred())
	at, err := pathIn(data, []string{"pids"})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	if at != "/" {
		g.Expect(home).To(gomega.Equal([]string{filepath.Join(root, "tasks")}))
		g.Expect(os.MkdirAll(filepath.Join(root, at), 0o755)).To(gomega.Succeed())
	}
	g.Expect(h.home()).To(gomega.Equal([]string{filepath.Join(root, at, "tasks")}))
}
