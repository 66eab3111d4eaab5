package observers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// Records as Linux 6.18 wrote them, paths shortened; the group kill after
// mm/oom_kill.c, whose host had cgroup version 2.
const (
	ownKill = "6,416,1325770569,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/run/job,task_memcg=/run/job/sub,task=exe,pid=123,uid=65534\n" +
		"3,417,1325770611,-;Memory cgroup out of memory: Killed process 123 (exe) total-vm:1627276kB, anon-rss:64896kB, file-rss:5988kB, shmem-rss:0kB, UID:0 pgtables:272kB oom_score_adj:0\n"
	groupKill = "6,418,1325770700,-;Tasks in /run/job are going to be killed due to memory.oom.group set\n" +
		"3,419,1325770701,-;Memory cgroup out of memory: Killed process 124 (exe) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB, UID:0 pgtables:2kB oom_score_adj:0\n"
	twiceKill = "6,418,1325770700,-;Tasks in /run/job are going to be killed due to memory.oom.group set\n" +
		"3,419,1325770701,-;Memory cgroup out of memory: Killed process 123 (exe) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB, UID:0 pgtables:2kB oom_score_adj:0\n"
	siblingKill = "6,420,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/run/job2,task_memcg=/run/job2,task=a,oom_memcg=/run/job,pid=130,uid=0\n" +
		"3,421,1,-;Memory cgroup out of memory: Killed process 130 (a) total-vm:1kB\n"
	aboveKill = "6,422,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/run,task_memcg=/run/job,task=exe,pid=131,uid=0\n" +
		"3,423,1,-;Memory cgroup out of memory: Killed process 131 (exe) total-vm:1kB\n"
	foreignKill = "6,424,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/shop,task_memcg=/shop/db,task=db,pid=140,uid=0\n" +
		"3,425,1,-;Memory cgroup out of memory: Killed process 140 (db) total-vm:1kB\n"
	globalKill = "6,426,1,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/run/job,task=exe,pid=150,uid=0\n" +
		"3,427,1,-;Out of memory: Killed process 150 (exe) total-vm:1kB\n"
	unnamedKill = "3,428,1,-;Memory cgroup out of memory: Killed process 160 (exe) total-vm:1kB\n"
	forgedKill  = "14,429,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/shop,task_memcg=/shop,task=db,pid=170,uid=0\n" +
		"11,430,1,-;Memory cgroup out of memory: Killed process 170 (db) total-vm:1kB\n"
	noise = "6,431,1,-;cgroup: fork rejected by pids controller in /run/job\n SUBSYSTEM=cpu\n\n;\n6,432\n"
)

func oomFixture(t *testing.T) (*OOM, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "kmsg")
	// What stands before the watch is armed is another time's.
	if err := os.WriteFile(log, []byte(foreignKill), 0o600); err != nil {
		t.Fatal(err)
	}
	return NewOOM(Host{Cgroup: "testdata/cgroup/v1", Kmsg: log}, "/run", nil), log
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOOMClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		log  string
		want map[string]int64
	}{
		"own":             {ownKill, map[string]int64{"own": 1}},
		"own group":       {ownKill + groupKill, map[string]int64{"own": 2}},
		"told twice":      {ownKill + twiceKill, map[string]int64{"own": 1}},
		"sibling":         {siblingKill, nil},
		"above":           {aboveKill, map[string]int64{"above": 1}},
		"elsewhere":       {foreignKill, map[string]int64{"elsewhere": 1}},
		"machine":         {globalKill, map[string]int64{"foreign": 1}},
		"rate-limited":    {unnamedKill, map[string]int64{"unnamed": 1}},
		"after another's": {foreignKill + unnamedKill, map[string]int64{"elsewhere": 1, "unnamed": 1}},
		"not the kernel":  {forgedKill, nil},
		"noise":           {noise, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, log := oomFixture(t)
			w, err := o.Watch(t.Context(), Subject{Cgroup: "/run/job"})
			g.Expect(err).NotTo(HaveOccurred())
			appendTo(t, log, noise+tc.log+noise)
			w.Sample()
			obs := w.Stored()
			for _, v := range []string{"own", "above", "foreign", "elsewhere", "unnamed"} {
				g.Expect(obs.Values[v].After).To(Equal(tc.want[v]), v)
			}
			g.Expect(obs.Found).To(HaveLen(int(tc.want["foreign"] + tc.want["unnamed"])))
		})
	}
}

// A victim beside the job, because a group ran out that both are in, may be the
// job's doing.
func TestOOMOfASharedGroupIsForeign(t *testing.T) {
	g := NewWithT(t)
	o, log := oomFixture(t)
	w, err := o.Watch(t.Context(), Subject{Cgroup: "/shop/x/job"})
	g.Expect(err).NotTo(HaveOccurred())
	appendTo(t, log, foreignKill)
	obs := w.Stored()
	g.Expect(obs.Values["foreign"].After).To(Equal(int64(1)))
	g.Expect(obs.Found).To(HaveLen(1))
}

func TestOOMWatchesShareOneLog(t *testing.T) {
	g := NewWithT(t)
	o, log := oomFixture(t)
	first, err := o.Watch(t.Context(), Subject{Cgroup: "/run/job"})
	g.Expect(err).NotTo(HaveOccurred())
	appendTo(t, log, ownKill)
	second, err := o.Watch(t.Context(), Subject{Cgroup: "/run/job"})
	g.Expect(err).NotTo(HaveOccurred())
	appendTo(t, log, aboveKill)
	g.Expect(first.Stored().Values["own"].After).To(BeEquivalentTo(1))
	obs := second.Stored()
	g.Expect(obs.Values["own"].After).To(BeZero(), "it was before the second watch")
	g.Expect(obs.Values["above"].After).To(BeEquivalentTo(1))
	g.Expect(o.log.followers).To(BeZero())
	_, err = unix.FcntlInt(uintptr(o.log.fd), unix.F_GETFD, 0)
	g.Expect(err).To(MatchError(unix.EBADF), "the log is closed with the last watch")
}

func TestOOMSaysWhatItLost(t *testing.T) {
	g := NewWithT(t)
	o, _ := oomFixture(t)
	answers := []error{unix.EPIPE, unix.EAGAIN} // lost before the watch: not its loss
	o.log.read = func(int, []byte) (int, error) {
		if len(answers) == 0 {
			return 0, unix.EAGAIN
		}
		answer := answers[0]
		answers = answers[1:]
		return 0, answer
	}
	early, err := o.Watch(t.Context(), Subject{Cgroup: fixtureJob})
	g.Expect(err).NotTo(HaveOccurred())
	early.Ended()
	w, err := o.Watch(t.Context(), Subject{Cgroup: fixtureJob})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(early.Stored().Lost).To(BeEmpty())
	answers = []error{unix.EINTR, unix.EPIPE, unix.EAGAIN}
	w.Sample()
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Lost).To(ContainSubstring("overwritten before they were read"))
	g.Expect(obs.Values["events"].After).To(BeEquivalentTo(1))
}

func TestOOMWithoutALogKeepsTheCounter(t *testing.T) {
	g := NewWithT(t)
	o := NewOOM(Host{Cgroup: "testdata/cgroup/v1", Kmsg: "/nonexistent/kmsg"}, "/run", nil)
	w, err := o.Watch(t.Context(), Subject{Cgroup: fixtureJob})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Lost).To(And(ContainSubstring("/nonexistent/kmsg"), ContainSubstring("kernel.dmesg_restrict")))
	g.Expect(obs.Values["events"].After).To(BeEquivalentTo(1))
	g.Expect(obs.Values).NotTo(HaveKey("own"), "what was not seen is no zero")
}

func TestWithinTakesWholeComponents(t *testing.T) {
	g := NewWithT(t)
	g.Expect(within("/run/job", "/run/job")).To(BeTrue())
	g.Expect(within("/run/job/sub", "/run/job")).To(BeTrue())
	g.Expect(within("/docker/abc/run/job", "/run/job")).To(BeTrue(), "a machine that is a container")
	g.Expect(within("/run/job2", "/run/job")).To(BeFalse())
	g.Expect(within("/run", "/run/job")).To(BeFalse())
	g.Expect(within("", "")).To(BeFalse())
}

func FuzzKmsg(f *testing.F) {
	for _, s := range []string{ownKill, groupKill, globalKill, noise} {
		for line := range strings.Lines(s) {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		var p oomParser
		if r, ok := p.parse(record); ok && r.memcg != "" {
			t.Errorf("one record alone named a cgroup: %+v", r)
		}
	})
}
