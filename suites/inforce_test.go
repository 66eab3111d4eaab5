package suites

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/runsc"
)

// madeSandbox is a made /proc and cgroups of version 1, with a sandbox in a job's
// cgroup that allows 256 MiB below one that allows 512 MiB.
type madeSandbox struct {
	t    *testing.T
	dir  string
	host observers.Host

	runtime runsc.Identity
}

const madeJob = "/tenwalls/job_1"

func newMadeSandbox(t *testing.T) *madeSandbox {
	m := &madeSandbox{t: t, dir: t.TempDir()}
	m.host = observers.Host{Proc: filepath.Join(m.dir, "proc"), Cgroup: filepath.Join(m.dir, "cgroup")}
	for group, limit := range map[string]string{"/tenwalls": "536870912", madeJob: "268435456", "/else": "9223372036854771712"} {
		m.write("cgroup/memory"+group+"/memory.limit_in_bytes", limit)
		m.write("cgroup/memory"+group+"/memory.memsw.limit_in_bytes", limit)
	}
	m.write("cgroup/pids/tenwalls/pids.max", "100")
	m.write("cgroup/pids"+madeJob+"/pids.max", "512")
	m.write("cgroup/pids/else/pids.max", "max")
	m.write("cgroup/cpu/tenwalls/cpu.cfs_quota_us", "150000")
	m.write("cgroup/cpu/tenwalls/cpu.cfs_period_us", "100000")
	for _, c := range []string{"memory", "pids", "cpuacct"} {
		m.write("cgroup/"+c+"/cgroup.procs", "")
	}
	m.write("cgroup/memory"+madeJob+"/cgroup.procs", "77\n")
	m.write("proc/77/cmdline", "runsc-sandbox\x00--root=/state/box-1\x00--network=none\x00boot\x00--attached\x00box-1\x00")
	m.write("proc/77/status", "Name:\tx\nUid:\t0 0 0 0\nSeccomp:\t2\nCapEff:\t000000000008001f\n")
	m.in(madeJob)
	for _, ns := range []string{"pid", "mnt", "net", "ipc", "uts", "user", "cgroup", "time"} {
		m.link("proc/self/ns/"+ns, ns+":[1]")
		m.link("proc/77/ns/"+ns, ns+":[2]")
	}
	m.open(3, "socket:[4711]", 2)
	m.open(4, "/var/jobs/1/logs/runsc.log.20261201-044409.924451.boot.txt", 1)
	return m
}

func (m *madeSandbox) write(name, text string) {
	m.t.Helper()
	name = filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *madeSandbox) link(name, to string) {
	m.t.Helper()
	name = filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		m.t.Fatal(err)
	}
}

// in puts the sandbox into a group, as /proc tells.
func (m *madeSandbox) in(group string) {
	m.t.Helper()
	m.write("proc/77/cgroup", fmt.Sprintf("4:memory:%s\n3:pids:%s\n2:cpu:%s\n1:cpuacct:/\n0::/\n", group, group, group))
}

func (m *madeSandbox) open(fd int, target string, flags int) {
	m.t.Helper()
	m.link(fmt.Sprintf("proc/77/fd/%d", fd), target)
	m.write(fmt.Sprintf("proc/77/fdinfo/%d", fd), fmt.Sprintf("pos:\t0\nflags:\t0%o\n", flags))
}

func (m *madeSandbox) remove(name string) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
		m.t.Fatal(err)
	}
}

// look reads back through a cell of that name.
func (m *madeSandbox) look(to *readback, cell string) map[string]string {
	m.t.Helper()
	tree, err := cgroup.Detect(m.host.Cgroup)
	if err != nil {
		m.t.Fatal(err)
	}
	g, err := tree.Open(madeJob)
	if err != nil {
		m.t.Fatal(err)
	}
	w := &inForceWatch{to, cell, m.host, g, runsc.Traces{Cgroup: madeJob, Container: "box-1", Dir: "/var/jobs/1"}, m.runtime}
	w.Sample()
	return to.values()
}

func TestWhatIsInForce(t *testing.T) {
	g := NewWithT(t)
	m := newMadeSandbox(t)
	v := m.look(&readback{}, referenceCell)
	for key, want := range map[string]string{
		"cgroup: held by": "the job's cgroup", "cgroup: memory limit": "268435456", "cgroup: swap limit": "0",
		"cgroup: task limit": "100", "cgroup: processor limit": "1500", // both of the group above
		"sandbox process: flags": "--network=none boot --attached", "sandbox process: CapEff": "000000000008001f",
		"sandbox process: pid namespace": "its own",
		"sandbox process: descriptors":   "JOB/logs/runsc.log.boot.txt (write); socket (read, write)",
	} {
		g.Expect(v).To(HaveKeyWithValue(key, want))
	}
}

// A runtime that is not where the runner put it is found all the same, and its
// limits are those of where it is.
func TestWhatIsInForceElsewhere(t *testing.T) {
	g := NewWithT(t)
	m := newMadeSandbox(t)
	m.in("/else")
	m.write("cgroup/memory"+madeJob+"/cgroup.procs", "")
	v := m.look(&readback{}, referenceCell)
	g.Expect(v).To(HaveKeyWithValue("cgroup: held by", "another cgroup than the job's"))
	g.Expect(v).To(HaveKeyWithValue("cgroup: memory limit", fmt.Sprint(cgroup.Unlimited)))
	g.Expect(v).To(HaveKeyWithValue("cgroup: task limit", fmt.Sprint(cgroup.Unlimited)))
	m.write("proc/77/cmdline", "runsc-sandbox\x00boot\x00box-2\x00") // another job's
	g.Expect(m.look(&readback{}, referenceCell)).To(BeEmpty())
}

// A runtime that starts another program is told by what its processes run, and
// ends the run without a report.
func TestTheProgramOfTheSandbox(t *testing.T) {
	g := NewWithT(t)
	m := newMadeSandbox(t)
	var r readback
	g.Expect(m.look(&r, referenceCell)).NotTo(HaveKey("sandbox process: program"), "it has just ended")
	g.Expect(r.strangers()).To(Succeed())

	m.write("runsc", "runsc")
	m.runtime = runsc.Identity{Path: filepath.Join(m.dir, "runsc"), Digest: evidence.Digest([]byte("runsc"))}
	m.link("proc/77/exe", m.runtime.Path)
	g.Expect(m.look(&r, referenceCell)).To(HaveKeyWithValue("sandbox process: program", asNamed), "asked again")
	var same readback
	g.Expect(m.look(&same, referenceCell)).To(HaveKeyWithValue("sandbox process: program", asNamed))
	g.Expect(same.strangers()).To(Succeed())

	m.write("copy", "runsc") // it was replaced by its like
	m.remove("proc/77/exe")
	m.link("proc/77/exe", filepath.Join(m.dir, "copy"))
	g.Expect(m.look(&readback{}, referenceCell)).To(HaveKeyWithValue("sandbox process: program", asNamed))

	m.remove("proc/77/exe")
	m.write("plain", "")
	m.link("proc/77/exe", filepath.Join(m.dir, "plain", "x")) // ENOTDIR
	var unread readback
	g.Expect(m.look(&unread, referenceCell)).To(HaveKeyWithValue("sandbox process: program", "unread: not a directory"))
	g.Expect(unread.strangers()).To(MatchError(ContainSubstring("unread")))

	m.write("other", "other")
	m.remove("proc/77/exe")
	m.link("proc/77/exe", filepath.Join(m.dir, "other"))
	var other readback
	g.Expect(m.look(&other, referenceCell)).To(HaveKeyWithValue("sandbox process: program", filepath.Join(m.dir, "other")+" "+evidence.Digest([]byte("other"))))
	g.Expect(other.strangers()).To(MatchError(ContainSubstring("the sandbox process does not run the binary there but " + filepath.Join(m.dir, "other"))))
	g.Expect((&readback{}).strangers()).To(Succeed(), "no sandbox was seen: the trials tell that")
}

// What is open for a moment is no difference between two runs.
func TestDescriptorsOfAMoment(t *testing.T) {
	g := NewWithT(t)
	m := newMadeSandbox(t)
	var r readback
	m.open(9, "anon_inode:[pidfd]", 2)
	m.look(&r, referenceCell)
	g.Expect(os.Remove(filepath.Join(m.dir, "proc/77/fd/9"))).To(Succeed())
	m.look(&r, referenceCell)
	g.Expect(m.look(&r, referenceCell)["sandbox process: descriptors"]).NotTo(ContainSubstring("pidfd"))
}

// The reference job's values take the place of those of another.
func TestTheReferenceJobIsRead(t *testing.T) {
	g := NewWithT(t)
	m := newMadeSandbox(t)
	var r readback
	v := m.look(&r, "outside")
	g.Expect(v).To(HaveKey("sandbox process: Seccomp"))
	g.Expect(v).NotTo(HaveKey("sandbox process: descriptors"))
	m.write("proc/77/status", "Seccomp:\t2\nCapEff:\t00\n")
	g.Expect(m.look(&r, "here")["sandbox process: CapEff"]).To(Equal("000000000008001f"))
	g.Expect(m.look(&r, referenceCell)["sandbox process: CapEff"]).To(Equal("00"))
	m.write("proc/77/status", "Seccomp:\t0\n") // not locked in yet
	g.Expect(m.look(&readback{}, referenceCell)).To(BeEmpty())
}

// The reference is a job that the suite has, without lifts and without grants.
func TestTheReferenceJobIsOne(t *testing.T) {
	for _, trial := range Trials() {
		if c := trial.cell; c.Name == referenceCell && len(c.Lifts) == 0 && len(c.Inputs) == 0 {
			return
		}
	}
	t.Error(strings.ToUpper(referenceCell) + " is no job without lifts and inputs")
}
