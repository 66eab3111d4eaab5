package observers

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const fixtureJob = "/tenwalls/job"

func fixtureCgroups(t *testing.T, tree string) *Cgroups {
	t.Helper()
	c, err := OpenCgroups(Host{Cgroup: filepath.Join("testdata/cgroup", tree)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reading is a method of Cgroups, with what the fixture must give.
type reading struct {
	name string
	read func(*Cgroups, string) (int64, error)
	want int64
}

func TestCgroupReadings(t *testing.T) {
	for tree, tc := range map[string]struct {
		version  int
		time     time.Duration
		procs    []int
		readings []reading
	}{
		"v1": {1, 357390189, []int{14345, 14387, 14388, 14389, 14390, 14391, 14392, 14393}, []reading{
			{"MemoryPeak", (*Cgroups).MemoryPeak, 67108864},
			{"MemoryLimit", (*Cgroups).MemoryLimit, 67108864},
			{"SwapUsage", (*Cgroups).SwapUsage, 0},
			{"SwapLimit", (*Cgroups).SwapLimit, 0},
			{"OOMKills", (*Cgroups).OOMKills, 1}, // counted in the child only
			{"PIDs", (*Cgroups).PIDs, 8},
			{"PIDsPeak", (*Cgroups).PIDsPeak, 8},
			{"PIDsLimit", (*Cgroups).PIDsLimit, 8},
			{"PIDsRefused", (*Cgroups).PIDsRefused, 1}, // counted in the child only
		}},
		"v2": {2, 2004512 * time.Microsecond, []int{14345, 14387}, []reading{
			{"MemoryUsage", (*Cgroups).MemoryUsage, 41943040},
			{"MemoryPeak", (*Cgroups).MemoryPeak, 67108864},
			{"MemoryLimit", (*Cgroups).MemoryLimit, 67108864},
			{"SwapUsage", (*Cgroups).SwapUsage, 4096},
			{"SwapPeak", (*Cgroups).SwapPeak, 8192},
			{"SwapLimit", (*Cgroups).SwapLimit, 0},
			{"OOMKills", (*Cgroups).OOMKills, 2},
			{"PIDs", (*Cgroups).PIDs, 8},
			{"PIDsPeak", (*Cgroups).PIDsPeak, 8},
			{"PIDsLimit", (*Cgroups).PIDsLimit, 8},
			{"PIDsRefused", (*Cgroups).PIDsRefused, 3}, // the kernel's own sum, not added twice
			{"ProcessorLimit", (*Cgroups).ProcessorLimit, int64(1500 * time.Millisecond)},
		}},
		"v2old": {version: 2, readings: []reading{
			{"MemoryLimit", (*Cgroups).MemoryLimit, Unlimited},
			{"PIDsLimit", (*Cgroups).PIDsLimit, Unlimited},
			{"PIDsRefused", (*Cgroups).PIDsRefused, 3},
		}},
	} {
		t.Run(tree, func(t *testing.T) {
			g := NewWithT(t)
			c := fixtureCgroups(t, tree)
			g.Expect(c.Version()).To(Equal(tc.version))
			if tc.time != 0 {
				g.Expect(c.ProcessorTime(fixtureJob)).To(Equal(tc.time))
			}
			g.Expect(c.Procs(fixtureJob)).To(Equal(tc.procs))
			for _, r := range tc.readings {
				n, err := r.read(c, fixtureJob)
				g.Expect(err).NotTo(HaveOccurred(), r.name)
				g.Expect(n).To(Equal(r.want), r.name)
			}
		})
	}
}

func TestWhatTheKernelDoesNotAccount(t *testing.T) {
	g := NewWithT(t)
	old := fixtureCgroups(t, "v2old")
	for file, read := range map[string]func(*Cgroups, string) (int64, error){
		"memory.peak":         (*Cgroups).MemoryPeak,
		"memory.swap.current": (*Cgroups).SwapUsage,
		"memory.swap.peak":    (*Cgroups).SwapPeak,
		"memory.swap.max":     (*Cgroups).SwapLimit,
		"pids.peak":           (*Cgroups).PIDsPeak,
		"cpu.max":             (*Cgroups).ProcessorLimit,
	} {
		_, err := read(old, fixtureJob)
		g.Expect(err).To(MatchError(ErrNotAccounted))
		g.Expect(err).To(MatchError(ContainSubstring(file)))
		_, err = read(old, "/tenwalls/gone")
		g.Expect(err).NotTo(MatchError(ErrNotAccounted), "a group that is gone is no missing account")
		g.Expect(err).To(MatchError(fs.ErrNotExist))
	}
	_, err := fixtureCgroups(t, "v1").SwapPeak(fixtureJob)
	g.Expect(err).To(MatchError(ErrNotAccounted))
}

func TestDetectNamesWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	_, err := OpenCgroups(Host{Cgroup: root})
	g.Expect(err).To(MatchError(And(ContainSubstring(`controller "memory"`), ContainSubstring("mount -t cgroup -o memory"))))
	g.Expect(os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte("cpu memory\n"), 0o644)).To(Succeed())
	_, err = OpenCgroups(Host{Cgroup: root})
	g.Expect(err).To(MatchError(And(ContainSubstring("cgroup.controllers"), ContainSubstring(`lacks "pids"`), ContainSubstring("subtree_control"))))
}

func TestControllersMountedTogether(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	job := filepath.Join(root, "cpu,cpuacct", fixtureJob)
	for _, dir := range []string{"memory", "pids", "cpu,cpuacct"} {
		g.Expect(os.MkdirAll(filepath.Join(root, dir), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, dir, "cgroup.procs"), nil, 0o644)).To(Succeed())
	}
	// Hybrid: the version 2 tree is there, without controllers, beside them.
	g.Expect(os.MkdirAll(filepath.Join(root, "unified"), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(root, "unified", "cgroup.controllers"), nil, 0o644)).To(Succeed())
	g.Expect(os.MkdirAll(job, 0o755)).To(Succeed())
	for name, text := range map[string]string{"cpuacct.usage": "7\n", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"} {
		g.Expect(os.WriteFile(filepath.Join(job, name), []byte(text), 0o644)).To(Succeed())
	}
	for _, link := range []string{"", "cpuacct"} { // with and without the usual link
		if link != "" {
			g.Expect(os.Symlink("cpu,cpuacct", filepath.Join(root, link))).To(Succeed())
		}
		c, err := OpenCgroups(Host{Cgroup: root})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Version()).To(Equal(1))
		g.Expect(c.ProcessorTime(fixtureJob)).To(BeEquivalentTo(7))
		g.Expect(c.ProcessorLimit(fixtureJob)).To(Equal(Unlimited))
	}
}

func TestCgroupPathsStayBelowTheRoot(t *testing.T) {
	g := NewWithT(t)
	c := fixtureCgroups(t, "v2")
	for _, path := range []string{"", "/", "tenwalls", "/tenwalls/../..", "/tenwalls/", "/a\n"} {
		_, err := c.PIDs(path)
		g.Expect(err).To(MatchError(ContainSubstring("absolute, clean")), path)
	}
}
