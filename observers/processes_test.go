package observers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const scanJob = "/tenwalls/none/job"

// madeHost is a made /proc beside made cgroups, of version 2.
type madeHost struct {
	tb           testing.TB
	proc, cgroup string
}

func newMadeHost(tb testing.TB) *madeHost {
	tb.Helper()
	m := &madeHost{tb: tb, proc: tb.TempDir(), cgroup: tb.TempDir()}
	m.write(filepath.Join(m.cgroup, "cgroup.controllers"), "memory pids\n")
	return m
}

func (m *madeHost) write(name, text string) {
	m.tb.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		m.tb.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		m.tb.Fatal(err)
	}
}

// stat is the one file that a scan reads of a process.
func (m *madeHost) stat(pid int, state string, parent, group, session int) {
	m.tb.Helper()
	m.statOf(pid, state, parent, group, session, 4194560, 1)
}

func (m *madeHost) statOf(pid int, state string, parent, group, session, flags, threads int) {
	m.tb.Helper()
	name := filepath.Join(m.proc, fmt.Sprint(pid), "stat")
	if err := os.RemoveAll(name); err != nil {
		m.tb.Fatal(err)
	}
	m.write(name, fmt.Sprintf("%d (a) b (c) %s %d %d %d 0 -1 %d 9000 80000 50 200 10 20 30 40 20 0 %d 0 4242 1270833152\n", pid, state, parent, group, session, flags, threads))
}

// process makes one that runs, leads its own group and session, and is in the
// cgroup.
func (m *madeHost) process(pid, parent int, cgroup string) {
	m.tb.Helper()
	m.stat(pid, "S", parent, pid, pid)
	m.write(filepath.Join(m.cgroup, cgroup, "cgroup.procs"), fmt.Sprintln(pid))
}

func (m *madeHost) end(pid int) {
	m.tb.Helper()
	if err := os.RemoveAll(filepath.Join(m.proc, fmt.Sprint(pid))); err != nil {
		m.tb.Fatal(err)
	}
}

func (m *madeHost) arm() *processesWatch {
	m.tb.Helper()
	p := NewProcesses(Host{Proc: m.proc, Cgroup: m.cgroup}, "/tenwalls/none", nil)
	w, err := p.arm(Subject{Cgroup: scanJob, Container: "box-1", Scratch: "/var/scratch/1"})
	if err != nil {
		m.tb.Fatal(err)
	}
	return w
}

// armedScan watches a made /proc in which one process was there before.
func armedScan(t *testing.T) (*processesWatch, *madeHost) {
	t.Helper()
	m := newMadeHost(t)
	m.process(100001, 1, "/system")
	return m.arm(), m
}

func after(w Watch, name string) func() int64 {
	obs := w.Stored()
	return func() int64 { return obs.Values[name].After }
}

func TestProcessesByCgroup(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, 1, scanJob)
	m.process(100003, 1, scanJob+"/sub")
	m.process(100004, 1, scanJob+"2") // another job
	obs := w.Stored()
	g.Expect(obs.Values["in_cgroup"]).To(Equal(Reading{Worst: 2, After: 2, Unit: "processes"}))
	g.Expect(obs.Values["descendants"].After).To(BeEquivalentTo(2))
	g.Expect(obs.Found).To(ConsistOf(ContainSubstring("100002"), ContainSubstring("100003")))
}

func TestProcessesByAncestry(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100009, 1, scanJob)
	m.process(100003, 100009, "/") // a child with a lower pid, outside
	w.Sample()
	g.Expect(w.o.Values["descendants"].Worst).To(BeEquivalentTo(2))
	// The parent ends, the child is the init's now: known still.
	m.end(100009)
	m.process(100003, 1, "/")
	w.Sample()
	g.Expect(w.o.Values["descendants"].After).To(BeEquivalentTo(1))
	// Its pid becomes another process's: that one is not the job's. The old
	// folder is kept, renamed, so that its inode is not given again.
	g.Expect(os.Rename(filepath.Join(m.proc, "100003"), filepath.Join(m.proc, "kept"))).To(Succeed())
	m.process(100003, 1, "/")
	obs := w.Stored()
	g.Expect(obs.Values["descendants"]).To(Equal(Reading{Worst: 2, After: 0, Unit: "processes"}))
	g.Expect(obs.Found).To(BeEmpty())
}

func TestProcessOfAKnownGroupIsTheJobs(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100009, 1, scanJob)
	w.Sample()
	m.end(100009)
	// Its child was never seen with its parent, but kept its session.
	m.process(100010, 1, "/")
	m.stat(100010, "S", 1, 100010, 100009)
	g.Expect(after(w, "descendants")()).To(BeEquivalentTo(1))
}

func TestProcessesByFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		file, link, text string
		want             int
	}{
		"command line":    {file: "cmdline", text: "runsc\x00--root=/x\x00run\x00box-1\x00", want: 1},
		"environment":     {file: "environ", text: "A=b\x00SCRATCH=/var/scratch/1\x00", want: 1},
		"open file":       {link: "fd/3", text: "/var/scratch/1/f (deleted)", want: 1},
		"folder":          {link: "cwd", text: "/var/scratch/1", want: 1},
		"another's id":    {file: "cmdline", text: "run\x00box-12\x00", want: 0},
		"another's files": {link: "fd/3", text: "/var/scratch/10/f", want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w, m := armedScan(t)
			for _, pid := range []int{100001, 100002} { // the first was there before: not the job's
				m.process(pid, 1, "/")
				dir := filepath.Join(m.proc, fmt.Sprint(pid))
				g.Expect(os.MkdirAll(filepath.Join(dir, "fd"), 0o755)).To(Succeed())
				if tc.file != "" {
					g.Expect(os.WriteFile(filepath.Join(dir, tc.file), []byte(tc.text), 0o644)).To(Succeed())
				} else {
					g.Expect(os.Symlink(tc.text, filepath.Join(dir, tc.link))).To(Succeed())
				}
			}
			obs := w.Stored()
			g.Expect(obs.Lost).To(BeEmpty())
			g.Expect(obs.Values["by_files"].After).To(BeEquivalentTo(tc.want))
			g.Expect(obs.Found).To(HaveLen(tc.want))
		})
	}
}

func TestProcessesThatDoNotCount(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, kthreadd, scanJob)
	m.process(os.Getpid(), 1, scanJob)
	m.process(100003, 1, scanJob)
	m.stat(100003, "Z", 1, 100003, 100003)
	g.Expect(os.Mkdir(filepath.Join(m.proc, "100004"), 0o755)).To(Succeed()) // just ended
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Values["in_cgroup"].After).To(BeZero())
}

func TestProcessesSayWhatTheyCannotRead(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, 1, scanJob)
	g.Expect(os.WriteFile(filepath.Join(m.proc, "100002", "stat"), []byte("100002 (x"), 0o644)).To(Succeed())
	g.Expect(w.Stored().Lost).To(ContainSubstring("100002/stat: no name in brackets"))
	_, err := NewProcesses(Host{Proc: "/nonexistent", Cgroup: "testdata/cgroup/v1"}, "/x", nil).Watch(t.Context(), Subject{Cgroup: "/x/y"})
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

// Who came after the watch was armed is read once, and again when what it comes
// from turns out to be the job's.
func TestProcessesAreReadOnce(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, 1, "/other")
	m.process(100003, 100002, "/other") // its child
	m.process(100004, 100002, "/other") // another, which will be a zombie
	m.process(100005, 100002, "/other") // and one that will have another parent
	m.process(100006, 1, "/other")
	w.Sample()
	g.Expect(w.o.Values["descendants"].After).To(BeZero())
	g.Expect(w.last).To(HaveLen(5))
	// A file that is not there is not read.
	for _, pid := range []string{"100004", "100006"} {
		g.Expect(os.Remove(filepath.Join(m.proc, pid, "stat"))).To(Succeed())
	}
	w.Sample()
	g.Expect(w.last).To(HaveLen(5))
	// The parent enters the job's cgroup late.
	m.write(filepath.Join(m.cgroup, scanJob, "cgroup.procs"), "100002\n")
	m.stat(100004, "Z", 100002, 100004, 100004)
	m.stat(100005, "S", 1, 100005, 100005)
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Values["in_cgroup"].After).To(BeEquivalentTo(1))
	g.Expect(obs.Values["descendants"].After).To(BeEquivalentTo(2))
	g.Expect(obs.Found).To(ConsistOf(ContainSubstring("process 100002"), ContainSubstring("process 100003")))
}

// The job's own are read each time.
func TestProcessOfTheJobBecomesAZombie(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, 1, scanJob)
	m.process(100003, 100002, "/")
	w.Sample()
	g.Expect(w.o.Values["descendants"].After).To(BeEquivalentTo(2))
	m.stat(100003, "Z", 100002, 100003, 100003)
	w.Sample()
	g.Expect(w.o.Values["descendants"].After).To(BeEquivalentTo(1))
}

func TestProcessesForgetWhoEnded(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, 1, "/other")
	m.process(100003, kthreadd, "/other")
	w.Sample()
	g.Expect(w.last).To(HaveLen(1))
	m.end(100002)
	m.write(filepath.Join(m.proc, "100003", "stat"), ") what nobody reads: a kernel thread stays one")
	w.Sample()
	g.Expect(w.last).To(BeEmpty())
	g.Expect(w.o.Lost).To(BeEmpty())
}

// The kernel takes a dying process out of its cgroup before it makes a zombie of
// it: seen in between, it is not left behind, unless it stays.
func TestProcessOnItsWayOut(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, 1, scanJob)
	w.Sample()
	g.Expect(w.o.Values["descendants"].After).To(BeEquivalentTo(1))
	g.Expect(os.RemoveAll(filepath.Join(m.cgroup, scanJob))).To(Succeed())
	m.statOf(100002, "R", 1, 100002, 100002, 4194560|exitingFlag, 1)
	gone := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { defer close(gone); m.stat(100002, "Z", 1, 100002, 100002) })
	began := time.Now()
	obs := w.Stored()
	<-gone
	g.Expect(obs.Values["descendants"]).To(Equal(Reading{Worst: 1, After: 0, Unit: "processes"}))
	g.Expect(obs.Found).To(BeEmpty())
	g.Expect(time.Since(began)).To(BeNumerically("<", exitWithin))

	m.statOf(100002, "D", 1, 100002, 100002, 4194560|exitingFlag, 1)
	obs = w.Stored()
	g.Expect(obs.Values["descendants"].After).To(BeEquivalentTo(1))
	g.Expect(obs.Found).To(ConsistOf(ContainSubstring("process 100002: known as the job's")))
}

// What runs is not waited for.
func TestProcessLeftBesideOneOnItsWayOut(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, 1, scanJob)
	m.process(100003, 1, scanJob)
	m.statOf(100002, "R", 1, 100002, 100002, 4194560|exitingFlag, 1)
	began := time.Now()
	g.Expect(w.Stored().Values["in_cgroup"].After).To(BeEquivalentTo(2))
	g.Expect(time.Since(began)).To(BeNumerically("<", exitWithin/2))
}

// A process whose first thread has ended shows as a zombie, and goes on.
func TestProcessWhoseFirstThreadHasEnded(t *testing.T) {
	g := NewWithT(t)
	w, m := armedScan(t)
	m.process(100002, 1, scanJob)
	m.statOf(100002, "Z", 1, 100002, 100002, 4194560|exitingFlag, 2)
	g.Expect(after(w, "in_cgroup")()).To(BeEquivalentTo(1))
}

func TestParseStat(t *testing.T) {
	g := NewWithT(t)
	const rest = " 1 2 3 0 -1 4194308 1 0 0 0 1 1 0 0 20 0 "
	p, err := parseStat([]byte("7 (a) S (b) R" + rest + "1 0 5"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p).To(Equal(process{parent: 1, group: 2, session: 3, running: true, exiting: true}))
	for _, state := range []string{"Z", "X"} {
		p, err = parseStat([]byte("7 (a) " + state + rest + "1\n"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.running).To(BeFalse())
	}
	for _, bad := range []string{"", "7 (a", "7 (a)", "7 (a) S 1 2", "7 (a) S 1 x 3 0", "7 (a) S 1 2 3 0 -1 4"} {
		_, err = parseStat([]byte(bad))
		g.Expect(err).To(HaveOccurred(), bad)
	}
}
