package observers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// residueTree is a host of files: two processes, one in the job's cgroup and
// namespace, and an empty state folder.
type residueTree struct {
	t     *testing.T
	root  string
	watch *residueWatch
}

const hostMount = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"

func newResidueTree(t *testing.T, hierarchy string) *residueTree {
	t.Helper()
	tree := &residueTree{t: t, root: t.TempDir()}
	tree.write("proc/self/mountinfo", hostMount)
	tree.write("proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path\n")
	tree.process(1, "init\x00", 10)
	tree.write(filepath.Join("cgroup", hierarchy, "cgroup.procs"), "1\n")
	host := Host{Proc: filepath.Join(tree.root, "proc"), Cgroup: filepath.Join(tree.root, "cgroup")}
	subject := Subject{Place: "trial-3", Container: "c0ffee", Cgroup: "/run-1/job-3", Scratch: filepath.Join(tree.root, "scratch-3")}
	scan, err := newResidueScan(host, Grounds{State: []string{filepath.Join(tree.root, "state"), "/nowhere"}}, subject)
	if err != nil {
		t.Fatal(err)
	}
	tree.watch = &residueWatch{scan: scan, looked: map[string]bool{}}
	// The job lives, and is looked at once.
	tree.process(42, "runsc-sandbox\x00boot\x00c0ffee\x00", 99)
	tree.write(filepath.Join("cgroup", hierarchy, "run-1/job-3/cgroup.procs"), "42\n")
	tree.watch.Sample()
	// The job ends without a trace.
	tree.remove("proc/42")
	tree.remove(filepath.Join("cgroup", hierarchy, "run-1"))
	return tree
}

func (r *residueTree) write(name, content string) {
	r.t.Helper()
	name = filepath.Join(r.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *residueTree) process(pid int, cmdline string, namespace int) {
	r.t.Helper()
	dir := fmt.Sprintf("proc/%d", pid)
	r.write(dir+"/cmdline", cmdline)
	if err := os.MkdirAll(filepath.Join(r.root, dir, "ns"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(fmt.Sprintf("net:[%d]", namespace), filepath.Join(r.root, dir, "ns/net")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *residueTree) remove(name string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.root, name)); err != nil {
		r.t.Fatal(err)
	}
}

// Each case leaves one thing; the scan must count it under its kind alone.
func TestEachKindOfResidueIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(*residueTree)
		kind  string
		found string
	}{
		"nothing": {func(*residueTree) {}, "", ""},
		"others": {func(r *residueTree) {
			r.process(50, "runsc-sandbox\x00boot\x00c0ffee7\x00", 10)
			r.write("proc/self/mountinfo", hostMount+"2 1 0:9 / /run/xc0ffee rw - tmpfs none rw\n")
			r.write("state/ac0ffee_sandbox:ac0ffee.state", "")
			r.write("cgroup/run-1/job-33/cgroup.procs", "50\n")
		}, "", ""},
		"a process of its container":      {func(r *residueTree) { r.process(51, "runsc\x00run\x00c0ffee\x00", 10) }, "processes", "process 51: runsc run c0ffee"},
		"a process that took its network": {func(r *residueTree) { r.process(52, "sleep\x00", 99) }, "namespaces", "network namespace 99, kept by process 52"},
		"a namespace bound": {func(r *residueTree) {
			r.write("proc/self/mountinfo", hostMount+"2 1 0:4 net:[99] /run/somewhere rw - nsfs nsfs rw\n")
		}, "namespaces", "network namespace 99, kept by the mount at /run/somewhere"},
		"the runtime's shared namespace": {func(r *residueTree) {
			r.write("proc/self/mountinfo", hostMount+"2 1 0:4 net:[99] /run/runsc/null-netns rw - nsfs nsfs rw\n")
			r.process(53, "runsc-gofer\x00other\x00", 99)
		}, "", ""},
		"a mount on its scratch": {func(r *residueTree) {
			r.write("proc/self/mountinfo", hostMount+"2 1 0:9 / "+r.root+"/scratch-3 rw - tmpfs none rw\n")
		}, "mounts", "(tmpfs)"},
		"a mount of its place": {func(r *residueTree) {
			r.write("proc/self/mountinfo", hostMount+"2 1 8:1 /images/trial-3 /mnt rw - ext4 /dev/sda1 rw\n")
		}, "mounts", "mount at /mnt (ext4)"},
		"state of runsc": {func(r *residueTree) { r.write("state/c0ffee_sandbox:c0ffee.state", "") }, "state", "c0ffee.state"},
		"control socket": {func(r *residueTree) { r.write("state/runsc-c0ffee.sock", "") }, "state", "runsc-c0ffee.sock"},
		"bound socket": {func(r *residueTree) {
			r.write("proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path\n0000: 00000002 00000000 00010000 0001 01 123 @runsc-c0ffee.sock\n")
		}, "state", "unix socket @runsc-c0ffee.sock"},
		"scratch": {func(r *residueTree) { r.write("scratch-3/f", "") }, "scratch", "scratch-3"},
	} {
		for version, hierarchy := range map[string]string{"v1": "pids", "v2": "."} {
			t.Run(name+" "+version, func(t *testing.T) {
				g := NewWithT(t)
				tree := newResidueTree(t, hierarchy)
				c.leave(tree)
				tree.watch.Ended()
				expectResidue(g, tree.watch.Stored(), c.kind, c.found)
			})
		}
	}
}

func TestAJobsCgroupIsResidueInEitherVersion(t *testing.T) {
	for version, hierarchy := range map[string]string{"v1": "pids", "v2": "."} {
		for name, group := range map[string]string{"its own": "run-1/job-3", "named after it": "elsewhere/c0ffee"} {
			t.Run(version+" "+name, func(t *testing.T) {
				tree := newResidueTree(t, hierarchy)
				tree.write(filepath.Join("cgroup", hierarchy, group, "cgroup.procs"), "")
				expectResidue(NewWithT(t), tree.watch.Stored(), "cgroups", group)
			})
		}
	}
}

func TestAProcessInTheJobsCgroup(t *testing.T) {
	g := NewWithT(t)
	tree := newResidueTree(t, "pids")
	tree.write("cgroup/pids/run-1/job-3/cgroup.procs", "54\n")
	seen := tree.watch.Stored()
	g.Expect(seen.Values["processes"]).To(Equal(Reading{0, 1, 1, "count"}))
	g.Expect(seen.Found).To(ContainElement("process 54 in cgroup /run-1/job-3"))
}

// The bind files of the harness's places may well bear a job's name, and a job
// may live in a namespace that was there before it.
func TestWhatIsTheHarnessesOwnIsNoResidue(t *testing.T) {
	g := NewWithT(t)
	tree := newResidueTree(t, "pids")
	tree.watch.scan.grounds.Places = []string{"/run/trial-3/place.net"}
	tree.write("proc/self/mountinfo", hostMount+"2 1 0:4 net:[7] /run/trial-3/place.net rw - nsfs nsfs rw\n")
	tree.process(43, "runsc-sandbox\x00", 10) // the namespace of process 1
	tree.write("cgroup/pids/run-1/job-3/cgroup.procs", "43\n")
	tree.watch.Sample()
	tree.remove("cgroup/pids/run-1")
	seen := tree.watch.Stored()
	g.Expect(seen.Lost).To(BeEmpty())
	g.Expect(seen.Found).To(BeEmpty())
}

func TestAScanThatCannotReadIsLost(t *testing.T) {
	for _, gone := range []string{"proc", "proc/self/mountinfo", "proc/net/unix"} {
		t.Run(gone, func(t *testing.T) {
			tree := newResidueTree(t, "pids")
			tree.remove(gone)
			NewWithT(t).Expect(tree.watch.Stored().Lost).NotTo(BeEmpty())
		})
	}
}

func expectResidue(g Gomega, seen Observation, kind, found string) {
	g.Expect(seen.Lost).To(BeEmpty())
	g.Expect(seen.Samples).To(Equal(2))
	for _, each := range residueKinds {
		want := Reading{Unit: "count"}
		if each == kind {
			want.Worst, want.After = 1, 1
		}
		g.Expect(seen.Values).To(HaveKeyWithValue(each, want), "%s: %v", each, seen.Found)
	}
	if kind == "" {
		g.Expect(seen.Found).To(BeEmpty())
	} else {
		g.Expect(seen.Found).To(ConsistOf(ContainSubstring(found)))
	}
}
