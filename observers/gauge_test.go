package observers

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// memoryOf sets the numbers of one job in a made version 2 tree.
func memoryOf(t *testing.T, root string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(root, fixtureJob)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGaugesKeepTheWorst(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte("memory pids"), 0o644)).To(Succeed())
	w, err := NewMemory(Host{Cgroup: root}, "/tenwalls", nil).Watch(t.Context(), Subject{Place: "p", Cgroup: fixtureJob})
	g.Expect(err).NotTo(HaveOccurred(), "the group is made later")
	w.Sample()
	memoryOf(t, root, map[string]string{"memory.current": "100\n", "memory.peak": "120\n", "memory.swap.current": "0\n", "memory.swap.peak": "7\n"})
	w.Sample()
	memoryOf(t, root, map[string]string{"memory.current": "40\n", "memory.peak": "130\n"})
	w.Ended()
	obs := w.Stored()
	g.Expect(obs).To(Equal(Observation{Observer: "memory", Place: "p", Samples: 3, Values: map[string]Reading{
		"usage": {Before: 0, Worst: 100, After: 40, Unit: "bytes"},
		"peak":  {Before: 0, Worst: 130, After: 130, Unit: "bytes"},
		"swap":  {Before: 0, Worst: 7, After: 0, Unit: "bytes"},
	}}))
}

func TestGaugesLeaveOutWhatIsNotAccounted(t *testing.T) {
	g := NewWithT(t)
	w, err := NewMemory(Host{Cgroup: "testdata/cgroup/v2old"}, "/tenwalls", nil).Watch(t.Context(), Subject{Cgroup: fixtureJob})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Values).To(And(HaveKey("usage"), Not(HaveKey("peak")), Not(HaveKey("swap"))))
}

func TestGaugesSayThatTheyLostTheEnd(t *testing.T) {
	g := NewWithT(t)
	p := NewProcessor(Host{Cgroup: "testdata/cgroup/v2"}, "/tenwalls", nil)
	w, err := p.Watch(t.Context(), Subject{Cgroup: "/tenwalls/gone"})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	w.Ended()
	g.Expect(w.Stored().Lost).To(And(ContainSubstring("final accounting"), ContainSubstring("cpu.stat")))
	w, err = p.Watch(t.Context(), Subject{Cgroup: fixtureJob})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Stored().Lost).To(ContainSubstring("never taken"))
	_, err = p.Watch(t.Context(), Subject{Cgroup: "relative"})
	g.Expect(err).To(MatchError(ContainSubstring("absolute, clean")))
}

func TestControlsFailWithoutCgroups(t *testing.T) {
	h := Host{Proc: "/proc", Cgroup: "/nonexistent", Kmsg: "/nonexistent"}
	for _, o := range []Observer{
		NewProcessor(h, "/x", broken{}), NewMemory(h, "/x", broken{}), NewOOM(h, "/x", broken{}),
		NewTasks(h, "/x", broken{}), NewProcesses(h, "/x", broken{}),
	} {
		t.Run(o.Name(), func(t *testing.T) {
			g := NewWithT(t)
			c := o.Control(t.Context())
			g.Expect(c.Passed).To(BeFalse())
			g.Expect(c.Reason).To(And(ContainSubstring("detect cgroups"), ContainSubstring("mount -t cgroup")))
			_, err := o.Watch(t.Context(), Subject{Cgroup: "/x/y"})
			g.Expect(err).To(MatchError(os.ErrNotExist))
		})
	}
}

// The idle time of the host is read before and after, and is no reason to see
// nothing where it cannot be read.
func TestIdleTimeOfTheHost(t *testing.T) {
	g := NewWithT(t)
	proc := t.TempDir()
	put := func(text string) {
		g.Expect(os.WriteFile(filepath.Join(proc, "stat"), []byte(text), 0o644)).To(Succeed())
	}
	watched := func(proc string, between func()) Observation {
		w, err := NewProcessor(Host{Proc: proc, Cgroup: "testdata/cgroup/v2"}, "/tenwalls", nil).Watch(t.Context(), Subject{Cgroup: fixtureJob})
		g.Expect(err).NotTo(HaveOccurred())
		between()
		w.Ended()
		return w.Stored()
	}
	put("cpu  10 20 30 400 5 6 7 8 9 10\ncpu0 1 2 3 4 5\n")
	idle := watched(proc, func() { put("cpu  10 20 30 410 7 6 7 8 9 10\n") }).Values["idle"]
	g.Expect(idle.After - idle.Before).To(BeEquivalentTo(120 * time.Millisecond))
	for _, text := range []string{"", "intr 1 2 3 4 5 6\n", "cpu 1 2\n", "cpu 1 2 3 x 5 6\n"} {
		put(text)
		o := watched(proc, func() {})
		g.Expect(o.Values).NotTo(HaveKey("idle"), text)
		g.Expect(o.Lost).To(BeEmpty(), text)
	}
}
