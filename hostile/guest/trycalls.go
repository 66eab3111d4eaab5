package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callRow is one system call for a throwaway child. The layout is known to the
// assembly.
type callRow struct {
	trap   uintptr
	args   [6]uintptr
	twice  uintptr // not 0: the call makes a child (fork, vfork), which has to end at once
	result int64   // what the call returned: from -4095 to -1 a negative errno
}

// callBatch is what a throwaway child does: the calls from at to end. The layout
// is known to the assembly.
type callBatch struct {
	at   uintptr // the call that comes next, or is being made
	end  uintptr
	rows *callRow
}

// cloneBatch makes a child that works through the batch and exits. It is a
// process of its own that shares the payload's memory (CLONE_VM), because a copy
// costs a runsc some milliseconds of processor time, and the whole job has two
// seconds. It never runs Go and needs no stack. It returns the child's id or a
// negative errno.
//
//go:noescape
func cloneBatch(flags uintptr, b *callBatch) (pid int64)

// ending is how a call in a throwaway child ended.
type ending struct {
	errno   syscall.Errno  // what the call answered; 0 when it succeeded
	signal  syscall.Signal // the signal that ended the child in the call, or 0
	exited  bool           // the call ended the child without a signal, as exit does
	blocked bool           // the call did not come back in time, and the child was killed
	failed  error          // no child could be made, or it was lost: nothing is known
}

// inChild makes one system call in a throwaway child, since the filter may end
// whoever makes it. The arguments may point to pinned memory of the caller.
func inChild(trap uintptr, args [6]uintptr, timeout time.Duration) ending {
	return tryCalls(0, []callRow{{trap: trap, args: args}}, timeout)[0]
}

// noHandler is a struct sigaction of the kernel's with SIG_DFL, no flags and an
// empty mask; it is larger than that of any machine.
var noHandler [8]uint64

// tryCalls makes the calls one after another in throwaway children, a new one
// wherever a call ended the last. The flags of clone(2) may ask for new
// namespaces. No call may change the memory that the children share with us.
func tryCalls(flags uintptr, calls []callRow, timeout time.Duration) []ending {
	// Row i+1 is call i. The row before a child's first call puts SIGSYS to its
	// default: the Go runtime's handler would print a trace and exit.
	rows := make([]callRow, len(calls)+1)
	copy(rows[1:], calls)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&rows[0])
	out := make([]ending, len(calls))
	for next := 0; next < len(calls); {
		rows[next] = callRow{trap: unix.SYS_RT_SIGACTION, args: [6]uintptr{
			uintptr(unix.SIGSYS), uintptr(unsafe.Pointer(&noHandler)), 0, 8,
		}}
		b := &callBatch{at: uintptr(next), end: uintptr(len(rows)), rows: &rows[0]}
		last := runBatch(flags, b, timeout)
		done := int(b.at) // rows before this one came back
		for i := next; i+1 < done; i++ {
			if r := rows[i+1].result; r < 0 && r > -4096 {
				out[i].errno = syscall.Errno(-r)
			}
		}
		if done == len(rows) {
			break
		}
		if done == next { // not even the first row came back
			last.failed = fmt.Errorf("throwaway child: not started: %+v", last)
			done++
		}
		out[done-1] = last
		next = done
	}
	return out
}

// runBatch starts one child on the batch and waits for its end, or until it has
// been in one call for longer than the timeout.
func runBatch(flags uintptr, b *callBatch, timeout time.Duration) ending {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(b)
	restore := blockSignals()
	pid := cloneBatch(flags|unix.CLONE_VM|uintptr(unix.SIGCHLD), b)
	restore()
	if pid < 0 {
		return ending{failed: syscall.Errno(-pid)}
	}
	seen, deadline := atomic.LoadUintptr(&b.at), time.Now().Add(timeout)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(int(pid), &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return ending{failed: fmt.Errorf("wait for a throwaway child: %w", err)}
		case got != 0 && status.Signaled():
			return ending{signal: status.Signal()}
		case got != 0:
			return ending{exited: true}
		case atomic.LoadUintptr(&b.at) != seen:
			seen, deadline = atomic.LoadUintptr(&b.at), time.Now().Add(timeout)
		case time.Now().After(deadline):
			return endBlocked(int(pid))
		}
		time.Sleep(pause)
	}
}

func endBlocked(pid int) ending {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return ending{failed: fmt.Errorf("kill a throwaway child: %w", err)}
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return ending{failed: fmt.Errorf("wait for a throwaway child: %w", err)}
	}
	return ending{blocked: true}
}
