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
// Pdeathsig is refused: the kernel sends it when the thread that made the child
// ends (prctl(2), PR_SET_PDEATHSIG), not the process. [Group.StartTied] keeps
// that thread.
func (g *Group) Start(cmd *exec.Cmd) error { return g.StartAfter(nil, cmd) }

// StartAfter is Start with a step before: before, when it is not nil, runs on
// the very thread that makes the child, so that what it changes of the thread
// (its network namespace, say) is inherited by the child and by nothing else.
func (g *Group) StartAfter(before func() error, cmd *exec.Cmd) error {
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Pdeathsig != 0 {
		return fmt.Errorf("start in cgroup %s: Pdeathsig would end the child with the thread that started it: use StartTied", g.path)
	}
	return g.start(before, cmd, nil)
}

// start starts the child from a thread of its own, which stays until until is
// closed when that is not nil.
func (g *Group) start(before func() error, cmd *exec.Cmd, until <-chan struct{}) error {
	if before == nil {
		before = func() error { return nil }
	}
	if g.h.version == 2 {
		_, err := onOwnThread(func() error {
			if err := before(); err != nil {
				return fmt.Errorf("start in cgroup %s: %w", g.path, err)
			}
			return g.startV2(cmd)
		}, until)
		return err
	}
	// The first use of a process in a Go program probes for pidfd with a child
	// of its own; let that happen before the thread is in the group.
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release()
	}
	tid, err := onOwnThread(func() error { return g.startV1(before, cmd, until != nil) }, until)
	if until == nil {
		waitThread(tid)
	}
	return err
}

// startV1 enters the group and starts the child. A thread that stays goes back
// to where it was, so that it is no task of the group's.
func (g *Group) startV1(before func() error, cmd *exec.Cmd, stays bool) error {
	var here, home []string
	if stays {
		var err error
		if home, err = g.h.home(); err != nil {
			return fmt.Errorf("start in cgroup %s: %w", g.path, err)
		}
	}
	for _, dir := range g.dirs() {
		here = append(here, filepath.Join(dir, "tasks"))
	}
	if err := move(here); err != nil {
		return fmt.Errorf("start in cgroup %s: enter: %w", g.path, err)
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
	if !stays {
		return nil
	}
	if err := move(home); err != nil {
		return errors.Join(fmt.Errorf("start in cgroup %s: leave: %w", g.path, err), cmd.Process.Kill(), reaped(cmd.Wait()))
	}
	return nil
}

// reaped drops how a child ended that was killed on purpose.
func reaped(err error) error {
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return nil
	}
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

// onOwnThread runs f on a thread that no other goroutine ever uses again, and
// returns when f has. The thread ends with the goroutine, because that never
// unlocks it: at once, or when until is closed if that is not nil and f
// succeeded. The runtime makes new threads from a clean one while a goroutine is
// locked, so none of them inherits the group. The main thread cannot end before
// the process does, so f never runs there.
func onOwnThread(f func() error, until <-chan struct{}) (tid int, err error) {
	type result struct {
		tid int
		err error
	}
	done, found := make(chan result, 1), make(chan struct{})
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			go run()
			<-found // while this goroutine keeps the main thread, run gets another
			runtime.UnlockOSThread()
			return
		}
		close(found)
		err := f()
		done <- result{unix.Gettid(), err}
		if err == nil && until != nil {
			<-until
		}
	}
	go run()
	r := <-done
	return r.tid, r.err
}

// waitThread returns when the thread is gone, so that the group's task count
// is the child's alone. There is no event for a thread's end; it takes some
// ten microseconds, and the deadline is so far beyond that only a machine that
// stands still meets it; past it the thread shows as EBUSY in Remove, which
// waits for as long as its caller lets it.
func waitThread(tid int) {
	name := "/proc/self/task/" + strconv.Itoa(tid)
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if _, err := os.Lstat(name); err != nil {
			return
		}
	}
}
