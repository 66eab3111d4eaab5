package observers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// limitedLog is what a kernel wrote that left out records; see its README.
func limitedLog(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/kmsg/limited")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// countedJob is a host whose cgroup /run/NAME counts OOM kills, and a way to set
// the count.
func countedJob(t *testing.T, name string) (*OOM, func(kills string), string) {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cgroup.controllers", "memory pids\n")
	write("kmsg", "")
	count := func(kills string) { write("run/"+name+"/memory.events", "oom "+kills+"\noom_kill "+kills+"\n") }
	count("0")
	log := filepath.Join(root, "kmsg")
	return NewOOM(Host{Cgroup: root, Kmsg: log}, "/run", nil), count, log
}

// What the kernel left out is no zero: where the job's cgroup counts a kill and
// no record names it, the observation is lost, and says why and what to do.
func TestOOMRecordsThatWereLeftOut(t *testing.T) {
	whole := limitedLog(t)
	late := whole[strings.Index(whole, "4,79752"):] // only the line that counts what was left out
	for name, tc := range map[string]struct {
		job, log, kills string
		lost            bool
		values          map[string]int64
	}{
		"named":                     {"job-3", whole, "1", false, map[string]int64{"own": 1, "unnamed": 3, "elsewhere": 0}},
		"left out":                  {"job-12", whole, "1", true, map[string]int64{"unnamed": 3}},
		"left out, and told late":   {"job-12", late, "1", true, map[string]int64{"unnamed": 0}},
		"nobody killed in the job":  {"job-20", whole, "0", false, map[string]int64{"own": 0, "unnamed": 3}},
		"named by the window after": {"job-14", late, "1", false, map[string]int64{"own": 1, "unnamed": 0}},
		"no record, none left out":  {"job-20", "", "1", false, map[string]int64{"own": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, count, log := countedJob(t, tc.job)
			w, err := o.Watch(t.Context(), Subject{Cgroup: "/run/" + tc.job})
			g.Expect(err).NotTo(HaveOccurred())
			appendTo(t, log, tc.log)
			count(tc.kills)
			w.Ended()
			obs := w.Stored()
			if tc.lost {
				g.Expect(obs.Lost).To(And(ContainSubstring("counts 1 OOM kills"), ContainSubstring("left out 3"),
					ContainSubstring("at most 10 in 5s"), ContainSubstring("run again")))
				for _, v := range []string{"own", "above", "foreign"} {
					g.Expect(obs.Values).NotTo(HaveKey(v))
				}
			} else {
				g.Expect(obs.Lost).To(BeEmpty())
			}
			for v, n := range tc.values {
				g.Expect(obs.Values[v].After).To(Equal(n), v)
				g.Expect(obs.Values).To(HaveKey(v))
			}
			g.Expect(obs.Values["events"].After).To(BeEquivalentTo(len(strings.Trim(tc.kills, "0"))))
		})
	}
}

func TestSpentRecordsAreCounted(t *testing.T) {
	g := NewWithT(t)
	o, _, log := countedJob(t, "job")
	appendTo(t, log, limitedLog(t))
	history, err := o.log.history()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(history).To(HaveLen(14))
	g.Expect(history[0].at.Microseconds()).To(BeEquivalentTo(11718475036))
	spent := func(i int) int { return spentAt(history, history[i].at) }
	g.Expect(spent(0)).To(Equal(1))
	g.Expect(spent(9)).To(Equal(10))
	g.Expect(spent(12)).To(Equal(10), "those left out spend nothing")
	g.Expect(spent(13)).To(Equal(10), "the first was more than a window before")
}

// The control waits when the kernel would not write what the run needs, and
// only then.
func TestOOMControlSparesRecordsForTheRun(t *testing.T) {
	for name, tc := range map[string]struct {
		kill, expect, waits int
	}{
		"the first kill of all":       {kill: 0, expect: 10, waits: 0},
		"enough are left":             {kill: 3, expect: 6, waits: 0},
		"one too few is left":         {kill: 4, expect: 6, waits: 1},
		"the run itself kills nobody": {kill: 9, expect: 0, waits: 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, _, log := countedJob(t, "job")
			appendTo(t, log, limitedLog(t))
			history, err := o.log.history()
			g.Expect(err).NotTo(HaveOccurred())
			waits := 0
			o.wait = func(context.Context) error { waits++; return nil }
			o.Expect(tc.expect)
			c := o.spare(t.Context(), Control{Passed: true}, history[tc.kill].at)
			g.Expect(c.Passed).To(BeTrue())
			g.Expect(waits).To(Equal(tc.waits))
			g.Expect(strings.Contains(c.Seen, "waited")).To(Equal(tc.waits > 0))
		})
	}
	g := NewWithT(t)
	o, _, log := countedJob(t, "job")
	appendTo(t, log, limitedLog(t))
	o.Expect(10)
	o.wait = func(context.Context) error { return errors.New("no time left") }
	history, err := o.log.history()
	g.Expect(err).NotTo(HaveOccurred())
	c := o.spare(t.Context(), Control{Passed: true}, history[5].at)
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(ContainSubstring("no time left"))
}

func TestAKillOfTheControlIsFoundInTheLog(t *testing.T) {
	g := NewWithT(t)
	o, _, log := countedJob(t, "job")
	appendTo(t, log, limitedLog(t)+unnamedKill+globalKill)
	history, err := o.log.history()
	g.Expect(err).NotTo(HaveOccurred())
	look := func(group string, pid int) (k killSeen) {
		k.take(history, group, pid)
		return k
	}
	g.Expect(look("/run/job-3", 30965)).To(Equal(killSeen{records: 1, at: history[2].at}))
	g.Expect(look("/run/job-12", 31610)).To(Equal(killSeen{unnamed: true}))
	g.Expect(look("/run/job-12", 150)).To(Equal(killSeen{}), "the machine ran out: that is no kill of the control's")
	g.Expect(look("/run/job-12", 1)).To(Equal(killSeen{}))
}

func TestWaitingForTheKernelEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := waitOut(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
