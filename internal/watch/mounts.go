package watch

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// mountsEvery bounds how often a change of the mount table is told: on a busy
// host it changes all the time, and each telling is a look.
const mountsEvery = 100 * time.Millisecond

// mounts tells of changes of the mount table. With another file mounted over it a
// path leads elsewhere, and nothing has happened in any folder. The kernel says so
// by POLLERR and POLLPRI on mountinfo, once for all changes since the last call
// (proc(5), /proc/pid/mounts).
type mounts struct {
	table int      // not an os.File: the Go runtime would poll it too, and the kernel tells a change to one poll only
	end   *os.File // the write end of a pipe: closing it ends the goroutine
	done  chan struct{}
}

// watchMounts calls tell after every change, from a goroutine of its own.
func watchMounts(tell func()) (*mounts, error) {
	table, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("watch mounts: %w", err)
	}
	ending, end, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch mounts: %w", err), unix.Close(table))
	}
	m := &mounts{table: table, end: end, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		defer ending.Close() //nolint:errcheck // nothing was written
		on := []unix.PollFd{{Fd: int32(ending.Fd()), Events: unix.POLLIN}, {Fd: int32(table), Events: unix.POLLPRI}}
		for {
			n, err := unix.Poll(on, -1)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return // two descriptors of ours; what is missed is seen at the tick
			}
			if n > 0 && on[1].Revents != 0 {
				tell()
			}
			// No more than the end is waited for here.
			if n, _ := unix.Poll(on[:1], int(mountsEvery.Milliseconds())); n > 0 {
				return
			}
		}
	}()
	return m, nil
}

// Close returns when the goroutine has ended.
func (m *mounts) Close() error {
	err := m.end.Close()
	<-m.done
	return errors.Join(err, unix.Close(m.table))
}
