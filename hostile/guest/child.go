package main

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A child made by fork has one thread and a copy of the payload's memory. The Go
// runtime is not alive in it: its other threads, the scheduler's and the
// collector's among them, are not there. So whatever runs in a child must be
// //go:nosplit, must not allocate, and may only make raw system calls, and it
// must end by exitChild. The caller blocks signals around it (see blockSignals),
// so that no handler of the runtime runs in the child.

// fork makes a child by a raw clone(2) without CLONE_VM. It returns twice: 0 in
// the child.
//
//go:nosplit
func fork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

// exitChild ends a child; it returns only if even that is refused, and then
// there is nothing left but to spin.
//
//go:nosplit
func exitChild(code uintptr) {
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}

// blockSignals locks the goroutine to its thread and blocks every signal there
// but SIGSYS: runsc leaves a blocked SIGSYS of its filter pending, and the call
// would look let through. The function that it returns undoes both.
func blockSignals() (restore func()) {
	runtime.LockOSThread()
	all, old := ^uint64(1<<(unix.SIGSYS-1)), uint64(0)
	sigmask(&all, &old)
	return func() {
		sigmask(&old, nil)
		runtime.UnlockOSThread()
	}
}

// sigmask sets the thread's signal mask, which is 8 bytes on every machine that
// runsc supports (rt_sigprocmask(2)).
func sigmask(set, old *uint64) {
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}
