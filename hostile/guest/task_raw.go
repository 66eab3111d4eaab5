package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawOrder is what a raw task finds at the top of its own stack and does, in
// this order. A raw task is one task exactly: it is unknown to the Go runtime
// and never runs Go. It shares the payload's memory, so that making it copies
// nothing (a runsc copies 2 MiB for every first write after a fork). The layout
// is known to the assembly.
type rawOrder struct {
	low     uintptr // touch the stack page by page down to here; 0 touches nothing
	spin    uintptr // not 0: spin for ever, and nothing of what follows
	session uintptr // not 0: setsid(2)
	silent  uintptr // not 0: do not report that the task lives (or the errno of setsid)
	report  uintptr // descriptor for records of eight bytes
	next    uintptr // rawOrder of a task to make; 0 makes none. A refusal is reported by its errno
	flags   uintptr // of clone(2) for that one
	leave   uintptr // not 0: end at once when that one was made
	release uintptr // descriptor to read one byte from before it ends
	record  uint64
}

// Flags of clone(2) for raw tasks. No CLONE_SETTLS: they run no Go.
const (
	rawProcess = unix.CLONE_VM | uintptr(unix.SIGCHLD)
	rawThread  = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND |
		unix.CLONE_THREAD | unix.CLONE_SYSVSEM
)

// cloneRaw makes a raw task that obeys the order at its stack's top. It returns
// the task's id or a negative errno. Signals have to be blocked.
//
//go:noescape
func cloneRaw(flags uintptr, order *rawOrder) (tid int64)

// smallStack is the stack of a task that only waits.
const smallStack = 4 << 10

// stackBlock is how many small stacks are mapped at once.
const stackBlock = 64

// newOrder returns the order at the top of a small stack, for a task of the crew
// that reports that it lives, and waits.
func (c *crew) newOrder() (*rawOrder, error) {
	if len(c.spare) == 0 {
		block, err := c.newStack(stackBlock * smallStack)
		if err != nil {
			return nil, err
		}
		c.spare = block
	}
	stack := c.spare[:smallStack]
	c.spare = c.spare[smallStack:]
	return c.orderOn(stack), nil
}

// newStack maps a stack, which disband unmaps.
func (c *crew) newStack(size int) ([]byte, error) {
	stack, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_STACK|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map a stack: %w", err)
	}
	c.stacks = append(c.stacks, stack)
	return stack, nil
}

// orderOn writes the order at the top of a stack, sixteen bytes aligned.
func (c *crew) orderOn(stack []byte) *rawOrder {
	order := (*rawOrder)(unsafe.Pointer(&stack[len(stack)-int(unsafe.Sizeof(rawOrder{})+15)&^15]))
	*order = rawOrder{report: uintptr(c.report[1]), release: uintptr(c.release[0])}
	return order
}

// addressOf returns where a mapping starts, which never moves.
func addressOf(mapping []byte) uintptr { return uintptr(unsafe.Pointer(&mapping[0])) }

// start makes the task.
func (c *crew) start(flags uintptr, order *rawOrder) syscall.Errno {
	if tid := cloneRaw(flags, order); tid < 0 {
		return syscall.Errno(-tid)
	}
	if flags&unix.CLONE_THREAD != 0 {
		c.threads++
	}
	return 0
}

// awaitTasks waits until the process has no more than n tasks. Nothing tells
// that a raw thread ended but its absence, so this polls.
func awaitTasks(n int) error {
	for deadline := time.Now().Add(time.Second); ; {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("await threads: %w", err)
		}
		if len(tasks) <= n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("await threads: %d tasks, not %d, after a second", len(tasks), n)
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil)
	}
}
