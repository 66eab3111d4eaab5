package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Start starts cmd inside the group: the child is a member before its first
// instruction, so that nothing it does escapes the accounts.
//
// On version 2 the kernel places it (clone3 with CLONE_INTO_CGROUP, Linux 5.7).
// On version 1 a child begins in the groups of the thread that made it, so a
// thread made for the purpose enters the group, starts the child and ends.
// Until it has ended it counts as one task of the group, hence Limits.PIDs of 2
// or more, and its processor time, well under a millisecond, is charged to it.
//
// On version 1 Pdeathsig is refused: the kernel sends it when the thread ends
// (prctl(2), PR_SET_PDEATHSIG), not the process.
func (g *Group) Start(cmd *exec.Cmd) error { return g.StartAfter(nil, cmd) }

// StartAfter is Start with a step before: before, when it is not nil, runs on
// the very thread that makes the child, so that what it changes of the thread
// (its network namespace, say) is inherited by the child and by nothing else.
func (g *Group) StartAfter(before func() error, cmd *exec.Cmd) error {
	if before == nil {
		before = func() error { return nil }
	}
	if g.h.version == 2 {
		_, err := onOwnThread(func() error {
			if err := before(); err != nil {
				return fmt.Errorf("start in cgroup %s: %w", g.path, err)
			}
			return g.startV2(cmd)
		})
		return err
	}
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Pdeathsig != 0 {
		return fmt.Errorf("start in cgroup %s: Pdeathsig is not possible on cgroup version 1: it would end the child with the thread that started it", g.path)
	}
	// The first use of a process in a Go program probes for pidfd with a child
	// of its own; let that happen before the thread is in the group.
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release()
	}
	tid, err := onOwnThread(func() error {
		for _, dir := range g.dirs() {
			if err := put(filepath.Join(dir, "tasks"), strconv.Itoa(unix.Gettid())); err != nil {
				return fmt.Errorf("start in cgroup %s: enter: %w", g.path, err)
			}
		}
		if err := before(); err != nil {
			return fmt.Errorf("start in cgroup %s: %w", g.path, err)
		}
		if err := cmd.Start(); err != nil {
			if errors.Is(err, syscall.EAGAIN) {
				err = fmt.Errorf("%w: pids.max leaves no room for the child beside the thread that starts it", err)
			}
			return fmt.Errorf("start in cgroup %s: %w", g.path, err)
		}
		return nil
	})
	waitThread(tid)
	return err
}

func (g *Group) startV2(cmd *exec.Cmd) error {
	dir, err := os.OpenFile(g.dirs()[0], unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("start in cgroup %s: %w", g.path, explain(err))
	}
	defer dir.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	err = cmd.Start()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = false, 0
	if err != nil {
		return fmt.Errorf("start in cgroup %s: %w", g.path, err)
	}
	return nil
}

// onOwnThread runs f on a thread that no other goroutine ever uses again: it
// ends with the goroutine, because that never unlocks it. The runtime makes
// new threads from a clean one while a goroutine is locked, so none of them
// inherits the group. The main thread cannot end before the process does, so f
// never runs there.
func onOwnThread(f func() error) (tid int, err error) {
	type result struct {
		tid int
		err error
	}
	done := make(chan result, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			next := make(chan struct{})
			go func() { defer close(next); run() }()
			<-next // while this goroutine keeps the main thread, run gets another
			runtime.UnlockOSThread()
			return
		}
		done <- result{unix.Gettid(), f()}
	}
	go run()
	r := <-done
	return r.tid, r.err
}

// waitThread returns when the thread is gone, so that the group's task count
// is the child's alone. There is no event for a thread's end; it takes some
// ten microseconds. Past the deadline the thread shows as EBUSY in Remove.
func waitThread(tid int) {
	name := "/proc/self/task/" + strconv.Itoa(tid)
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if _, err := os.Lstat(name); err != nil {
			return
		}
	}
}
