package observers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseFanotify(t *testing.T) {
	event := unix.FanotifyEventMetadata{Event_len: 24, Vers: unix.FANOTIFY_METADATA_VERSION, Metadata_len: 24, Mask: unix.FAN_OPEN, Fd: 5, Pid: 7}
	longer, future, short := event, event, event
	longer.Event_len, future.Vers, short.Event_len = 32, 99, 8
	encode := func(parts ...any) *bytes.Buffer {
		var b bytes.Buffer
		for _, part := range parts {
			if err := binary.Write(&b, binary.NativeEndian, part); err != nil {
				t.Fatal(err)
			}
		}
		return &b
	}
	for _, test := range []struct {
		name   string
		buffer *bytes.Buffer
		events int
		fails  bool
	}{
		{"nothing", encode(), 0, false},
		{"two", encode(event, event), 2, false},
		{"with further information", encode(longer, uint64(0), event), 2, false},
		{"cut off", encode(event, uint64(0)), 1, true},
		{"information cut off", encode(longer), 0, true},
		{"another version", encode(future), 0, true},
		{"shorter than itself", encode(short), 0, true},
	} {
		events, err := parseFanotify(test.buffer)
		if len(events) != test.events || (err != nil) != test.fails {
			t.Errorf("%s: got %d events, %v", test.name, len(events), err)
		}
	}
}

func TestInCgroup(t *testing.T) {
	for groups, want := range map[string]bool{
		"4:memory:/job\n0::/\n":  true,
		"0::/job\n":              true,
		"0::/job/below\n":        true,
		"0::/job2\n":             false,
		"0::/\n":                 false,
		"1:name=x:/a:b\n0::/job": true,
		"":                       false,
		"/job\n":                 false,
	} {
		if got := inCgroup(groups, "/job"); got != want {
			t.Errorf("%q: got %v", groups, got)
		}
	}
}

func TestCanaryEventsAreAttributed(t *testing.T) {
	for _, test := range []struct {
		name                              string
		pid                               int
		groups                            string
		alive                             bool
		opens, reads, other, unattributed int64
		found                             int
	}{
		{"the job", 7, "0::/job\n", true, 1, 2, 0, 0, 1},
		{"another", 8, "0::/other\n", true, 0, 0, 1, 0, 0},
		{"ended, known from a sample", 9, "", false, 1, 2, 0, 0, 1},
		{"ended, unknown", 10, "", false, 0, 0, 0, 2, 1},
		{"a number that another has now", 9, "0::/other\n", true, 0, 0, 1, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &canaryWatch{subject: Subject{Cgroup: "/job"}, pids: map[int]bool{9: true}, obs: Observation{Values: map[string]Reading{}}}
			w.event(test.pid, "/canary", accesses{1, 2}, test.groups, test.alive)
			for name, want := range map[string]int64{"opens": test.opens, "reads": test.reads, "other": test.other, "unattributed": test.unattributed} {
				if got := w.obs.Values[name].Worst; got != want {
					t.Errorf("%s: got %d, want %d", name, got, want)
				}
			}
			if len(w.obs.Found) != test.found {
				t.Errorf("found %q", w.obs.Found)
			}
		})
	}
}

// A process that is ending is shown in the root's cgroup: it is nobody's, and
// not somebody else's.
func TestEndingProcessIsNobodys(t *testing.T) {
	h := Host{Proc: t.TempDir()}
	const rest = " 0 -1 %s 0 0 0 0 0 0 0 0 20 0 1 0 100\n"
	plant(t, h.Proc, map[string]string{
		"7/cgroup": "0::/\n", "7/stat": "7 (cat) S 1 7 7" + strings.Replace(rest, "%s", "4194304", 1),
		"8/cgroup": "0::/\n", "8/stat": "8 (cat) R 1 8 8" + strings.Replace(rest, "%s", "4194308", 1),
		"9/cgroup": "0::/\n",
	})
	if groups, err := groupsOf(h, 7); err != nil || groups != "0::/\n" {
		t.Errorf("a live process is in %q: %v", groups, err)
	}
	if groups, err := groupsOf(h, 8); !errors.Is(err, errEnding) {
		t.Errorf("an ending process is in %q: %v", groups, err)
	}
	if groups, err := groupsOf(h, 9); err == nil {
		t.Errorf("a process that ended meanwhile is in %q", groups)
	}
}

// A job's process that has ended is that job's, and leaves no doubt about it with
// the jobs beside it.
func TestEndedProcessIsOneJobsAlone(t *testing.T) {
	watch := func(cgroup string, pids ...int) *canaryWatch {
		w := &canaryWatch{subject: Subject{Cgroup: cgroup}, pids: map[int]bool{}, obs: Observation{Values: map[string]Reading{}}}
		for _, pid := range pids {
			w.pids[pid] = true
		}
		return w
	}
	own, other := watch("/own", 9), watch("/other")
	c := &Canary{watches: map[*canaryWatch]bool{own: true, other: true}}
	c.tell(9, "/canary", accesses{1, 2}, "", false)
	if got := own.obs.Values["reads"].Worst; got != 2 {
		t.Errorf("its own job counts %d reads", got)
	}
	if got := other.obs.Values; got["unattributed"].Worst != 0 || got["reads"].Worst != 0 || got["other"].Worst != 1 {
		t.Errorf("the job beside it counts %+v", got)
	}
	c.tell(10, "/canary", accesses{0, 1}, "", false)
	for _, w := range []*canaryWatch{own, other} {
		if got := w.obs.Values["unattributed"].Worst; got != 1 {
			t.Errorf("%s: a read by nobody known counts %d", w.subject.Cgroup, got)
		}
	}
}
