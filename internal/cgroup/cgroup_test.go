package cgroup

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// made makes an ordinary folder that looks like the root of a tree.
func made(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func v2(t *testing.T, files map[string]string) (*Hierarchy, string) {
	t.Helper()
	files["cgroup.controllers"] = "cpu memory pids\n"
	root := made(t, files)
	h, err := Detect(root)
	if err != nil {
		t.Fatal(err)
	}
	return h, root
}

func TestDetectVersion(t *testing.T) {
	g := NewWithT(t)
	h, _ := v2(t, map[string]string{})
	g.Expect(h.Version()).To(Equal(2))
	h, err := Detect(made(t, map[string]string{
		"memory/cgroup.procs": "", "pids/cgroup.procs": "", "cpu,cpuacct/cgroup.procs": "", "unified/cgroup.controllers": "",
	}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.Version()).To(Equal(1))
	g.Expect(h.trees).To(HaveLen(3))
	_, err = Detect(made(t, map[string]string{"memory/cgroup.procs": "", "cpuacct/cgroup.procs": "", "pids/unmounted": ""}))
	g.Expect(err).To(MatchError(And(ContainSubstring(`controller "pids"`), ContainSubstring("mount -t cgroup -o pids"))))
}

func TestControllersAreHandedDownOnce(t *testing.T) {
	g := NewWithT(t)
	root := made(t, map[string]string{"cgroup.subtree_control": "cpu memory\n"})
	control := filepath.Join(root, "cgroup.subtree_control")
	g.Expect(enable(root, []string{"memory", "pids"})).To(Succeed())
	text, err := os.ReadFile(control)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(HavePrefix("+pids"), "only what is missing is written")
	g.Expect(os.WriteFile(control, []byte("memory pids\n"), 0o644)).To(Succeed())
	g.Expect(enable(root, []string{"memory", "pids"})).To(Succeed())
	text, err = os.ReadFile(control)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal("memory pids\n"))
}

func TestCreateUndoesWhatItMade(t *testing.T) {
	g := NewWithT(t)
	h, root := v2(t, map[string]string{"cgroup.subtree_control": "memory pids"})
	// An ordinary folder has no control files: the second level fails.
	_, err := h.Create("/run/job", Limits{})
	g.Expect(err).To(MatchError(And(ContainSubstring("create cgroup /run/job"), ContainSubstring("run/cgroup.subtree_control"))))
	g.Expect(filepath.Join(root, "run")).NotTo(BeADirectory())
	_, err = h.Create("/run", Limits{MemoryBytes: 1 << 20})
	g.Expect(err).To(MatchError(And(ContainSubstring("memory.max"), ContainSubstring("controller is not enabled"))))
	g.Expect(filepath.Join(root, "run")).NotTo(BeADirectory())
	g.Expect(os.Mkdir(filepath.Join(root, "run"), 0o755)).To(Succeed())
	_, err = h.Create("/run", Limits{})
	g.Expect(err).To(And(MatchError(fs.ErrExist), MatchError(ContainSubstring("an earlier job left it"))))
	g.Expect(filepath.Join(root, "run")).To(BeADirectory(), "another's group stays")
}

func TestLimitsAreWritten(t *testing.T) {
	g := NewWithT(t)
	h, root := v2(t, map[string]string{"job/memory.max": "", "job/memory.swap.max": "", "job/memory.oom.group": "", "job/pids.max": ""})
	group, err := h.Open("/job")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(group.limitJob(Limits{MemoryBytes: 268435456, PIDs: 64})).To(Succeed())
	for name, want := range map[string]string{"memory.max": "268435456", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "64"} {
		text, err := os.ReadFile(filepath.Join(root, "job", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(Equal(want), name)
	}
	g.Expect(os.Remove(filepath.Join(root, "job", "memory.swap.max"))).To(Succeed())
	g.Expect(group.limit(Limits{})).To(Succeed(), "a kernel without swap")
}

func TestErrorsNameTheRemedy(t *testing.T) {
	g := NewWithT(t)
	for errno, remedy := range map[syscall.Errno]string{
		syscall.EROFS:  "read-only",
		syscall.EACCES: "root",
		syscall.EPERM:  "delegated",
		syscall.EEXIST: "remove it first",
		syscall.ENOENT: "not enabled",
	} {
		err := explain(&fs.PathError{Op: "mkdir", Path: "/sys/fs/cgroup/x", Err: errno})
		g.Expect(err).To(MatchError(And(ContainSubstring("/sys/fs/cgroup/x"), ContainSubstring(remedy))))
		g.Expect(err).To(MatchError(errno))
	}
}

func TestWaitEmptyEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	root := made(t, map[string]string{"cgroup.events": "populated 1\nfrozen 0\n"})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	g.Expect(waitEmpty(ctx, filepath.Join(root, "cgroup.events"))).To(MatchError(context.DeadlineExceeded))
	g.Expect(os.WriteFile(filepath.Join(root, "cgroup.events"), []byte("populated 0\nfrozen 0\n"), 0o644)).To(Succeed())
	g.Expect(waitEmpty(t.Context(), filepath.Join(root, "cgroup.events"))).To(Succeed())
	g.Expect(waitEmpty(t.Context(), filepath.Join(root, "gone"))).To(Succeed())
}

func TestOpenRefusesPathsThatLeaveTheTree(t *testing.T) {
	g := NewWithT(t)
	h, _ := v2(t, map[string]string{})
	for _, p := range []string{"", "/", "a", "/a/..", "/../a", "/a/", "//a", "/a\x00"} {
		_, err := h.Open(p)
		g.Expect(err).To(HaveOccurred(), p)
		_, err = h.Create(p, Limits{})
		g.Expect(err).To(HaveOccurred(), p)
	}
}
