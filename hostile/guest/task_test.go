package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

func TestCountTasksCountsThreadsOfEveryProcess(t *testing.T) {
	proc := t.TempDir()
	for _, task := range []string{"1/task/1", "1/task/2", "1/task/3", "17/task/17", "self/task/1", "sys/task/1"} {
		if err := os.MkdirAll(filepath.Join(proc, task), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(proc, "18"), 0o700); err != nil { // ended meanwhile
		t.Fatal(err)
	}
	total, own, err := countTasks(proc, "1")
	if total != 4 || own != 3 || err != nil {
		t.Errorf("%d tasks, %d own, %v", total, own, err)
	}
	if _, _, err := countTasks(filepath.Join(proc, "absent"), "1"); err == nil {
		t.Error("no proc folder, no error")
	}
}

func TestCapPlaceNeedsTheCountedNumber(t *testing.T) {
	for _, c := range []struct {
		errno        syscall.Errno
		total, limit uint64
		limited      bool
		want         hostile.Place
	}{
		{unix.EAGAIN, 32, 32, true, hostile.ProcessCap},
		{unix.EAGAIN, 31, 32, true, hostile.Unknown},
		{unix.EAGAIN, 32, 32, false, hostile.Unknown},
		{unix.ENOMEM, 32, 32, true, hostile.Unknown},
	} {
		if got := capPlace(c.errno, c.total, c.limit, c.limited); got != c.want {
			t.Errorf("%+v gave %q", c, got)
		}
	}
}

func TestBoundIsFourfoldUnlessTheOrderSaysOtherwise(t *testing.T) {
	for text, want := range map[string]int64{"": 40, "4": 40, "1": 10, "0": 40, "-3": 40, "x": 40} {
		p := &Probe{order: hostile.Order{Params: map[string]string{"bound": text}}}
		if got := bound(p, 10); got != want {
			t.Errorf("bound %q gave %d, not %d", text, got, want)
		}
	}
}

// childrenOf returns the stat lines (proc_pid_stat(5)) of the children of this
// process, split after the command's name: state, parent, group, session...
func childrenOf(t *testing.T) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) > 3 && fields[1] == strconv.Itoa(os.Getpid()) {
			out[filepath.Base(filepath.Dir(path))] = fields
		}
	}
	return out
}

func TestBreedsMakeAsManyTasksAsThereIsRoomAndDisbandEndsThem(t *testing.T) {
	const room = 5
	for name, c := range map[string]struct {
		more     breed
		children int // of this process; the others are their children's, or orphans
		sessions int
		threads  int
	}{
		"parent":   {(*crew).manyChildren, room, 0, 0},
		"sessions": {(*crew).sessions, room, room, 0},
		"chain":    {(*crew).chain, 1, 0, 0},
		"orphans":  {(*crew).orphans, 0, 0, 0},
		"threads":  {(*crew).manyThreads, 0, 0, room},
	} {
		t.Run(name, func(t *testing.T) {
			crew, err := newCrew()
			if err != nil {
				t.Fatal(err)
			}
			var made, sessions int
			var errno syscall.Errno
			var children map[string][]string
			atTheCap(func() {
				made, errno = c.more(crew, room)
				children = childrenOf(t)
				for pid, stat := range children {
					if stat[3] == pid {
						sessions++
					}
				}
				own, rerr := os.ReadDir("/proc/self/task")
				if rerr != nil {
					t.Error(rerr)
				}
				err = crew.disband(made, len(own))
			})
			if made != room || errno != 0 || err != nil {
				t.Errorf("made %d, %v, %v", made, errno, err)
			}
			if len(children) != c.children || sessions != c.sessions || crew.threads != c.threads {
				t.Errorf("%d children, %d in sessions of their own, %d threads", len(children), sessions, crew.threads)
			}
			if left := childrenOf(t); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestRawThreadTouchesItsWholeStack(t *testing.T) {
	crew, err := newCrew()
	if err != nil {
		t.Fatal(err)
	}
	const size = 16 * 4096
	untouched := 0
	atTheCap(func() {
		stack, serr := crew.newStack(size)
		if serr != nil {
			t.Error(serr)
			return
		}
		order := crew.orderOn(stack)
		order.low = addressOf(stack)
		errno := crew.start(rawThread, order)
		if errno == 0 {
			errno = crew.hear()
		}
		for page := 0; page < size; page += 4096 {
			if strings.Trim(string(stack[page:page+4096]), "\x00") == "" {
				untouched++
			}
		}
		own, rerr := os.ReadDir("/proc/self/task")
		if rerr != nil || errno != 0 {
			t.Error(rerr, errno)
		}
		err = crew.disband(1, len(own))
	})
	if untouched > 0 || err != nil {
		t.Errorf("%d pages untouched, %v", untouched, err)
	}
}
