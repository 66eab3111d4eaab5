package main

import (
	"fmt"
	"math"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ways in which a child spins.
const (
	spinPlainly uintptr = iota
	spinInCalls         // in system calls
	spinDeaf            // with SIGXCPU ignored
)

// piece is how often a child counts up between two looks at the clock, about
// 0.1 ms.
const piece = 1 << 18

// meter tells from the work that was done how much processor time it took. A
// runsc's own clocks can't tell: they count a task that waits for a processor
// of the host as running. So the work is cut into pieces far shorter than a
// scheduler's slice, and a piece that took much longer than the fastest one was
// interrupted and counts as threefold only.
type meter struct {
	fastest int64 // ns that the fastest piece took
	used    int64 // ns
	stop    int64 // not 0: work no more
}

// add counts a piece that took so many ns.
//
//go:nosplit
//go:norace
func (m *meter) add(took int64) {
	m.fastest = min(m.fastest, took)
	m.used += min(took, 3*m.fastest)
}

// newMeters maps n meters that children share with the payload.
func newMeters(n int) ([]meter, error) {
	size := int(unsafe.Sizeof(meter{}))
	b, err := unix.Mmap(-1, 0, n*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map meters: %w", err)
	}
	meters := unsafe.Slice((*meter)(unsafe.Pointer(&b[0])), n)
	for i := range meters {
		meters[i].fastest = math.MaxInt64
	}
	return meters, nil
}

// spinner is what a spinning child is to do. It runs in the child, so that all
// of it is nosplit and makes raw calls only (see fork).
type spinner struct {
	way    uintptr
	meter  *meter
	share  time.Duration // ends by itself when the meter shows so much
	until  time.Duration // ends earlier when its process used so much by the guest's clock; 0 never
	relay  bool          // makes the next child at its end
	beside [3]*rawOrder  // threads that spin for ever beside it
}

// launch makes the child. Signals have to be blocked.
//
//go:nosplit
//go:noinline
//go:norace
func (s *spinner) launch() (pid uintptr, errno syscall.Errno) {
	pid, errno = fork()
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	hearSignals(uintptr(unix.SIGXCPU), s.way == spinDeaf)
	for i := range s.beside {
		if s.beside[i] != nil {
			cloneRaw(rawThread, s.beside[i])
		}
	}
	for s.spin(); s.relay && s.more(); s.spin() {
		if pid, errno = fork(); errno != 0 || pid != 0 {
			break
		}
	}
	exitChild(uintptr(errno))
	return 0, 0
}

// hearSignals unblocks every signal in a child, with one of them at its default
// or ignored instead of at the runtime's handler.
//
//go:nosplit
//go:norace
func hearSignals(signal uintptr, ignored bool) {
	action := [8]uint64{} // SIG_DFL, larger than a struct sigaction of any machine
	if ignored {
		action[0] = 1 // SIG_IGN
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	action[0] = 0 // no signal
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

// more tells whether the work goes on.
//
//go:nosplit
//go:norace
func (s *spinner) more() bool { return s.meter.used < int64(s.share) && s.meter.stop == 0 }

// spin works until the share or the limit in time is used up.
//
//go:nosplit
//go:norace
func (s *spinner) spin() {
	for s.more() {
		if s.until > 0 && clock(unix.CLOCK_PROCESS_CPUTIME_ID) >= int64(s.until) {
			return
		}
		start := clock(unix.CLOCK_MONOTONIC)
		for i := range piece {
			if s.way == spinInCalls && i&0x3ff == 0 {
				syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
			}
		}
		s.meter.add(clock(unix.CLOCK_MONOTONIC) - start)
	}
}

// clock reads a clock in ns (clock_gettime(2)).
//
//go:nosplit
//go:norace
func clock(id uintptr) int64 {
	var ts unix.Timespec
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Sec*1e9 + ts.Nsec
}
