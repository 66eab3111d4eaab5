package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// crew is what the tasks of one route share with the payload: they report in
// records of eight bytes and wait, each for one byte, until they are let go.
type crew struct {
	report  [2]int
	release [2]int
	stacks  [][]byte // of raw tasks, as mapped
	spare   []byte   // small stacks that no task has yet
	threads int      // raw threads started
	// perParent plays a limit that counts each task's own children: the mutant of
	// a cap that has to count the group.
	perParent int
}

func newCrew() (*crew, error) {
	var c crew
	if err := unix.Pipe2(c.report[:], 0); err != nil {
		return nil, fmt.Errorf("pipe for reports: %w", err)
	}
	if err := unix.Pipe2(c.release[:], 0); err != nil {
		return nil, fmt.Errorf("pipe for the release: %w", err)
	}
	return &c, nil
}

// hear reads one record: 0 from a task that lives, or the errno of what was
// refused to it. The call is raw so that the runtime, which may have no room for
// one more thread, does not take it as a reason to start one.
func (c *crew) hear() syscall.Errno {
	var record uint64
	_, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(c.report[0]), uintptr(unsafe.Pointer(&record)), 8)
	if errno != 0 {
		return errno
	}
	return syscall.Errno(record)
}

// reapOne waits for any child.
func (c *crew) reapOne() error {
	_, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, ones, 0, 0, 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("wait for a child: %w", errno)
	}
	return nil
}

// disband lets n tasks go and waits until none of them is left: children are
// reaped, orphans included when the payload is the first process (wait4(2),
// pid_namespaces(7)), and threads are seen to be gone. own is the number of the
// payload's own tasks, the crew's threads included.
func (c *crew) disband(n, own int) error {
	_, err := unix.Write(c.release[1], make([]byte, n))
	for werr := error(nil); werr == nil || werr == unix.EINTR; {
		_, werr = unix.Wait4(-1, nil, 0, nil)
	}
	if c.threads > 0 {
		err = errors.Join(err, awaitTasks(own-c.threads))
	}
	for _, stack := range c.stacks {
		err = errors.Join(err, unix.Munmap(stack))
	}
	for _, fd := range []int{c.report[0], c.report[1], c.release[0], c.release[1]} {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}

// atTheCap runs what runs while no task is left to the payload itself. Signals
// are blocked, so that children run no handler of the Go runtime, and no garbage
// is collected, so that the runtime starts no thread.
func atTheCap(run func()) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer blockSignals()()
	run()
}

// countTasks counts every task of every process under a proc folder, and those
// of the process self among them (proc_pid_task(5)). A process that ends
// meanwhile counts for nothing.
func countTasks(proc, self string) (total, own int, err error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0, 0, fmt.Errorf("count tasks: %w", err)
	}
	for _, e := range entries {
		if _, err := strconv.ParseUint(e.Name(), 10, 32); err != nil {
			continue
		}
		tasks, err := os.ReadDir(proc + "/" + e.Name() + "/task")
		if err != nil {
			continue
		}
		if total += len(tasks); e.Name() == self {
			own = len(tasks)
		}
	}
	return total, own, nil
}

// softLimit returns the soft limit of a resource and whether there is one
// (getrlimit(2)).
func softLimit(resource int) (limit uint64, limited bool) {
	var r unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &r); err != nil || r.Cur == unix.RLIM_INFINITY {
		return 0, false
	}
	return r.Cur, true
}

// limitOf says the soft limit of a resource in words.
func limitOf(resource int) string {
	limit, limited := softLimit(resource)
	if !limited {
		return "unlimited"
	}
	return strconv.FormatUint(limit, 10)
}

// bound returns how far a route goes before it gives up on its wall: so many
// times the granted number ("bound" in the order, four when missing), so that a
// fallen wall harms no machine.
func bound(p *Probe, granted int64) int64 {
	times, err := strconv.ParseInt(p.ParamOr("bound", "4"), 10, 32)
	if err != nil || times < 1 {
		times = 4
	}
	return times * granted
}

// numberOr returns a number of the order, or otherwise when it is missing.
func numberOr(p *Probe, name string, otherwise int64) int64 {
	if p.ParamOr(name, "") == "" {
		return otherwise
	}
	return p.Number(name)
}
