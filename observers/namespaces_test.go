package observers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNamespacesThatAreShared(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second map[string]string // nil: all five are the harness's
		want          map[string]int64
	}{
		"none":        {apart(), apart(), map[string]int64{}},
		"one of one":  {map[string]string{"pid": "pid:[2]", "mnt": "mnt:[2]", "ipc": "ipc:[2]", "uts": "uts:[2]"}, apart(), map[string]int64{"net": 1}},
		"all of both": {nil, nil, map[string]int64{"pid": 2, "mnt": 2, "net": 2, "ipc": 2, "uts": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := jail(t, 71, 72, 73)
			plant(t, h.Proc, filesOf("71", 1, tc.first))
			plant(t, h.Proc, filesOf("72", 1, tc.second))
			plant(t, h.Proc, filesOf("73", 0, nil)) // has not locked itself in: its namespaces mean nothing
			w, err := NewNamespaces(h).Watch(t.Context(), Subject{Place: "here", Cgroup: jailJob})
			g.Expect(err).NotTo(HaveOccurred())
			w.Sample()
			w.Sample()
			w.Ended()
			obs := w.Stored()
			g.Expect(obs.Lost).To(BeEmpty())
			g.Expect(obs.Place).To(Equal("here"))
			g.Expect(obs.Samples).To(Equal(2))
			for _, n := range []string{"pid", "mnt", "net", "ipc", "uts"} {
				g.Expect(obs.Values[n]).To(Equal(Reading{Worst: tc.want[n], After: tc.want[n], Unit: "count"}), n)
			}
			g.Expect(obs.Values["judged"].After).To(BeEquivalentTo(2))
			for _, f := range obs.Found {
				g.Expect(f).To(MatchRegexp(`^process 7[12] of the job shares the harness's (pid|mnt|net|ipc|uts) namespace$`))
			}
			g.Expect(len(obs.Found) > 0).To(Equal(len(tc.want) > 0))
		})
	}
}

// The worst stays when the process that shared is gone.
func TestNamespacesKeepTheWorst(t *testing.T) {
	g := NewWithT(t)
	h := jail(t, 71, 72)
	plant(t, h.Proc, filesOf("71", 1, apart()))
	plant(t, h.Proc, filesOf("72", 1, nil))
	w, err := NewNamespaces(h).Watch(t.Context(), Subject{Cgroup: jailJob})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	g.Expect(os.RemoveAll(filepath.Join(h.Proc, "72"))).To(Succeed())
	w.Sample()
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Values["net"]).To(Equal(Reading{Worst: 1, After: 0, Unit: "count"}))
	g.Expect(obs.Values["judged"]).To(Equal(Reading{Worst: 2, After: 1, Unit: "count"}))
}

// A filter that the harness has as well, or inherited to all, locks nobody in.
func TestNamespacesJudgeWhoHasMoreFiltersThanTheHarness(t *testing.T) {
	g := NewWithT(t)
	h := Host{Proc: t.TempDir(), Cgroup: t.TempDir()}
	plant(t, h.Proc, filesOf("self", 1, nil))
	plant(t, h.Proc, filesOf("71", 1, nil))
	plant(t, h.Cgroup, map[string]string{"pids" + jailJob + "/cgroup.procs": "71\n"})
	w, err := NewNamespaces(h).Watch(t.Context(), Subject{Cgroup: jailJob})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	obs := w.Stored()
	g.Expect(obs.Values["net"].Worst).To(BeZero())
	g.Expect(obs.Lost).To(Equal("no process of the job was seen after it had locked itself in"))
}

// What was not judged is lost, and what cannot be read is told.
func TestNamespacesSayWhatTheyLost(t *testing.T) {
	g := NewWithT(t)
	h := jail(t)
	w, err := NewNamespaces(h).Watch(t.Context(), Subject{Cgroup: "/no/such/job"})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	obs := w.Stored()
	g.Expect(obs.Samples).To(BeZero())
	g.Expect(obs.Lost).To(ContainSubstring("no process of the job was seen"))

	h = jail(t, 71)
	files := filesOf("71", 1, apart())
	delete(files, "71/ns/net")
	files["71/ns/net/not"] = "a link"
	plant(t, h.Proc, files)
	w, err = NewNamespaces(h).Watch(t.Context(), Subject{Cgroup: jailJob})
	g.Expect(err).NotTo(HaveOccurred())
	// A folder in the place of a link answers EINVAL, as a zombie does: gone.
	w.Sample()
	g.Expect(w.Stored().Lost).To(ContainSubstring("no process of the job was seen"))

	h.Proc = filepath.Join(h.Proc, "nothing")
	_, err = NewNamespaces(h).Watch(t.Context(), Subject{Cgroup: jailJob})
	g.Expect(err).To(MatchError(os.ErrNotExist))
	w, err = NewNamespaces(jail(t)).Watch(t.Context(), Subject{})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	g.Expect(w.Stored().Lost).To(ContainSubstring("no cgroup is named"))
}

// What was not read of two processes is not shared.
func TestNamespacesThatWereNotRead(t *testing.T) {
	g := NewWithT(t)
	g.Expect(sharedNamespaces(map[string]string{}, map[string]string{})).To(BeEmpty())
	g.Expect(sharedNamespaces(map[string]string{"net": "net:[1]"}, map[string]string{"net": "net:[1]", "pid": "pid:[1]"})).To(Equal([]string{"net"}))
}

func TestNamespacesControl(t *testing.T) {
	g := NewWithT(t)
	c := NewNamespaces(jail(t)).Control(t.Context())
	g.Expect(c.Passed).To(BeTrue(), c.Reason)
	g.Expect(c.Seen).To(Equal("pid mnt net ipc uts shared"))
	h := jail(t)
	g.Expect(os.Remove(filepath.Join(h.Proc, "self/ns/ipc"))).To(Succeed())
	c = NewNamespaces(h).Control(t.Context())
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(And(ContainSubstring("read namespaces"), ContainSubstring("ipc")))
	// On the machine the harness shares all with itself too.
	c = NewNamespaces(Local()).Control(t.Context())
	g.Expect(c.Passed).To(BeTrue(), c.Reason)
	g.Expect(strings.Fields(c.Seen)).To(HaveLen(6))
}
