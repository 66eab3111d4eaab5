package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// Parameters: "tasks", the granted number of tasks (32 when missing), "bound", and
// "hold_ms", how long tasks beyond the grant are kept. The count of every claim is of all tasks of the job, threads of the
// payload included.
var (
	_ = route("processes", "parent", func(p *Probe) { multiply(p, "clone(SIGCHLD)", (*crew).manyChildren) })
	_ = route("processes", "chain", func(p *Probe) { multiply(p, "clone(SIGCHLD) in the youngest", (*crew).chain) })
	_ = route("processes", "threads", func(p *Probe) { multiply(p, "clone(CLONE_THREAD)", (*crew).manyThreads) })
	_ = route("processes", "sessions", func(p *Probe) { multiply(p, "clone(SIGCHLD), setsid", (*crew).sessions) })
	_ = route("processes", "orphans", func(p *Probe) { multiply(p, "clone(SIGCHLD) twice", (*crew).orphans) })
)

// breed makes tasks that wait until one is refused or room are there. made
// counts those that wait for the release.
type breed func(c *crew, room int) (made int, errno syscall.Errno)

// multiply makes tasks until one is refused, counts the whole job at that
// moment, and lets all go again.
func multiply(p *Probe, call string, more breed) {
	granted := numberOr(p, "tasks", 32)
	limit, limited := softLimit(unix.RLIMIT_NPROC)
	c, err := newCrew()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	c.perParent = int(numberOr(p, "per_parent", 0))
	self := strconv.Itoa(os.Getpid())
	before, own, err := countTasks("/proc", self)
	if err != nil {
		p.Failed(err.Error())
		return
	}
	p.Reached(call, fmt.Sprintf("%d tasks are there, %d of them threads of the payload; RLIMIT_NPROC %s",
		before, own, limitOf(unix.RLIMIT_NPROC)))

	var made, total int
	var errno syscall.Errno
	atTheCap(func() {
		made, errno = more(c, int(bound(p, granted)))
		total, own, err = countTasks("/proc", self)
		if int64(total) > granted {
			hold(p)
		}
		err = errors.Join(err, c.disband(made, own))
	})
	note := fmt.Sprintf("%d tasks of the job were counted under /proc: %d made and waiting, %d of the payload's own process; RLIMIT_NPROC %s",
		total, made, own, limitOf(unix.RLIMIT_NPROC))
	switch {
	case err != nil:
		p.Failed(err.Error())
	case errno == 0:
		p.Happened(call, int64(total), "nothing refused; "+note)
	case int64(total) > granted:
		p.Happened(call, int64(total), fmt.Sprintf("more than %d tasks, then %s; %s", granted, errnoName(errno), note))
	default:
		p.Refused(kindOf(errno), capPlace(errno, uint64(total), limit, limited), call, int64(total), errnoName(errno)+"; "+note)
	}
}

// hold keeps more tasks than were granted for as long as the order says, so that
// the host can see them as well. The call is raw: the runtime has no room for
// another thread.
func hold(p *Probe) {
	span := unix.NsecToTimespec(numberOr(p, "hold_ms", 0) * 1e6)
	syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&span)), 0, 0)
}

// capPlace names the process cap only where its number is the number counted:
// EAGAIN comes from elsewhere as well (clone(2)).
func capPlace(errno syscall.Errno, total, limit uint64, limited bool) hostile.Place {
	if errno == unix.EAGAIN && limited && total == limit {
		return hostile.ProcessCap
	}
	return hostile.Unknown
}

// manyChildren makes all tasks from one parent.
func (c *crew) manyChildren(room int) (made int, errno syscall.Errno) {
	return c.many(room, rawProcess, rawOrder{})
}

// sessions makes children that each leave the payload's session and group.
func (c *crew) sessions(room int) (made int, errno syscall.Errno) {
	return c.many(room, rawProcess, rawOrder{session: 1})
}

// manyThreads makes threads of the payload's own process.
func (c *crew) manyThreads(room int) (made int, errno syscall.Errno) {
	return c.many(room, rawThread, rawOrder{})
}

func (c *crew) many(room int, flags uintptr, with rawOrder) (made int, errno syscall.Errno) {
	for made < room {
		if c.perParent > 0 && made == c.perParent {
			return made, unix.EAGAIN
		}
		order, err := c.newOrder()
		if err != nil {
			return made, errnoOf(err)
		}
		order.session = with.session
		if errno = c.start(flags, order); errno != 0 {
			return made, errno
		}
		made++
		if errno = c.hear(); errno != 0 {
			return made, errno
		}
	}
	return made, 0
}

// chain has every child make the next one. All orders are written beforehand.
func (c *crew) chain(room int) (made int, errno syscall.Errno) {
	var first, last *rawOrder
	for range room {
		order, err := c.newOrder()
		if err != nil {
			return 0, errnoOf(err)
		}
		if last == nil {
			first = order
		} else {
			last.next, last.flags = uintptr(unsafe.Pointer(order)), rawProcess
		}
		last = order
	}
	for errno = c.start(rawProcess, first); errno == 0 && made < room; made++ {
		if errno = c.hear(); errno != 0 {
			break
		}
	}
	return made, errno
}

// orphans makes each task by a child that ends at once. The last child, whose
// own was refused, stays and is counted.
func (c *crew) orphans(room int) (made int, errno syscall.Errno) {
	for made < room {
		child, err := c.newOrder()
		if err != nil {
			return made, errnoOf(err)
		}
		orphan, err := c.newOrder()
		if err != nil {
			return made, errnoOf(err)
		}
		child.silent, child.leave = 1, 1
		child.next, child.flags = uintptr(unsafe.Pointer(orphan)), rawProcess
		if errno = c.start(rawProcess, child); errno != 0 {
			return made, errno
		}
		made++ // the orphan, or the child to whom it was refused
		if errno = c.hear(); errno != 0 {
			return made, errno
		}
		if err := c.reapOne(); err != nil {
			return made, errnoOf(err)
		}
	}
	return made, 0
}
