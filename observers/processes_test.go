package observers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

const scanJob = "/tenwalls/none/job"

// armedScan watches a made /proc in which one process was there before.
func armedScan(t *testing.T) (w *processesWatch, root string) {
	t.Helper()
	root = t.TempDir()
	fixtureProcess(t, root, 100001, 1, "/system")
	p := NewProcesses(Host{Proc: root, Cgroup: "testdata/cgroup/v1"}, "/tenwalls/none", nil)
	w, err := p.arm(Subject{Cgroup: scanJob, Container: "box-1", Scratch: "/var/scratch/1"})
	if err != nil {
		t.Fatal(err)
	}
	return w, root
}

func after(w Watch, name string) func() int64 {
	obs := w.Stored()
	return func() int64 { return obs.Values[name].After }
}

func TestProcessesByCgroup(t *testing.T) {
	g := NewWithT(t)
	w, root := armedScan(t)
	fixtureProcess(t, root, 100002, 1, scanJob)
	fixtureProcess(t, root, 100003, 1, scanJob+"/sub")
	fixtureProcess(t, root, 100004, 1, scanJob+"2") // another job
	obs := w.Stored()
	g.Expect(obs.Values["in_cgroup"]).To(Equal(Reading{Worst: 2, After: 2, Unit: "processes"}))
	g.Expect(obs.Values["descendants"].After).To(BeEquivalentTo(2))
	g.Expect(obs.Found).To(ConsistOf(ContainSubstring("100002"), ContainSubstring("100003")))
}

func TestProcessesByAncestry(t *testing.T) {
	g := NewWithT(t)
	w, root := armedScan(t)
	fixtureProcess(t, root, 100009, 1, scanJob)
	fixtureProcess(t, root, 100003, 100009, "/") // a child with a lower pid, outside
	w.Sample()
	g.Expect(w.o.Values["descendants"].Worst).To(BeEquivalentTo(2))
	// The parent ends, the child is the init's now: known still.
	g.Expect(os.RemoveAll(filepath.Join(root, "100009"))).To(Succeed())
	fixtureProcess(t, root, 100003, 1, "/")
	w.Sample()
	g.Expect(w.o.Values["descendants"].After).To(BeEquivalentTo(1))
	// Its pid becomes another process's: that one is not the job's. The old
	// folder is kept, renamed, so that its inode is not given again.
	g.Expect(os.Rename(filepath.Join(root, "100003"), filepath.Join(root, "kept"))).To(Succeed())
	fixtureProcess(t, root, 100003, 1, "/")
	obs := w.Stored()
	g.Expect(obs.Values["descendants"]).To(Equal(Reading{Worst: 2, After: 0, Unit: "processes"}))
	g.Expect(obs.Found).To(BeEmpty())
}

func TestProcessOfAKnownGroupIsTheJobs(t *testing.T) {
	g := NewWithT(t)
	w, root := armedScan(t)
	fixtureProcess(t, root, 100009, 1, scanJob)
	w.Sample()
	g.Expect(os.RemoveAll(filepath.Join(root, "100009"))).To(Succeed())
	// Its child was never seen with its parent, but kept its session.
	fixtureProcess(t, root, 100010, 1, "/")
	g.Expect(os.WriteFile(filepath.Join(root, "100010", "stat"), []byte("100010 (x) S 1 100010 100009 0\n"), 0o644)).To(Succeed())
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
			w, root := armedScan(t)
			for _, pid := range []int{100001, 100002} { // the first was there before: not the job's
				fixtureProcess(t, root, pid, 1, "/")
				dir := filepath.Join(root, fmt.Sprint(pid))
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
	w, root := armedScan(t)
	fixtureProcess(t, root, 100002, kthreadd, scanJob)
	fixtureProcess(t, root, os.Getpid(), 1, scanJob)
	fixtureProcess(t, root, 100003, 1, scanJob)
	g.Expect(os.WriteFile(filepath.Join(root, "100003", "stat"), []byte("100003 (x) S) Z 1 1 1 0\n"), 0o644)).To(Succeed())
	g.Expect(os.Mkdir(filepath.Join(root, "100004"), 0o755)).To(Succeed()) // just ended
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Values["in_cgroup"].After).To(BeZero())
}

func TestProcessesSayWhatTheyCannotRead(t *testing.T) {
	g := NewWithT(t)
	w, root := armedScan(t)
	fixtureProcess(t, root, 100002, 1, scanJob)
	g.Expect(os.WriteFile(filepath.Join(root, "100002", "stat"), []byte("100002 (x"), 0o644)).To(Succeed())
	g.Expect(w.Stored().Lost).To(ContainSubstring("100002/stat: no name in brackets"))
	_, err := NewProcesses(Host{Proc: "/nonexistent", Cgroup: "testdata/cgroup/v1"}, "/x", nil).Watch(t.Context(), Subject{Cgroup: "/x/y"})
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
