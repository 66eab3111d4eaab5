package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A child that is left behind ends by itself after leftoverLife, for the case
// that nothing ends it.
var (
	_ = route("leftover", "daemon", func(p *Probe) {
		leave(p, "clone twice, setsid, exit", leftover{twice: true, session: true, closes: true})
	})
	_ = route("leftover", "session", func(p *Probe) { leave(p, "clone, setsid, exit", leftover{session: true, closes: true}) })
	_ = route("leftover", "ignore-signals", func(p *Probe) { leave(p, "clone, ignore signals, exit", leftover{deaf: true, closes: true}) })
	_ = route("leftover", "stopped", func(p *Probe) { leave(p, "clone, SIGSTOP, exit", leftover{stops: true, closes: true}) })
	_ = route("leftover", "holds-stdout", func(p *Probe) { leave(p, "clone, keep standard output, exit", leftover{}) })
	_ = route("leftover", "runner-killed", stay)
	_ = route("leftover", "cancelled", stay)
)

const leftoverLife = 30 * time.Second

// leftover is how a child stays behind.
type leftover struct {
	twice   bool // the child's child stays, an orphan
	session bool // in a session of its own
	deaf    bool // with SIGTERM, SIGHUP and SIGINT ignored
	stops   bool // stopped
	closes  bool // without the standard streams
	report  int  // descriptor for one byte, once all that is done
}

// leave makes a child that stays, waits until it is as it has to be, and returns
// for the payload to end.
func leave(p *Probe, call string, l leftover) {
	if err := l.make(); err != nil {
		p.Failed(err.Error())
		return
	}
	total, _, err := countTasks("/proc", "")
	if err != nil {
		p.Failed(err.Error())
		return
	}
	p.Reached(call, fmt.Sprintf("the child is there and as it has to be, %d tasks in all; the payload ends now", total))
}

// stay makes several children that sleep, and sleeps itself, until the job is
// ended from outside.
func stay(p *Probe) {
	for _, l := range []leftover{{closes: true}, {session: true, closes: true}, {deaf: true, closes: true}, {}} {
		if err := l.make(); err != nil {
			p.Failed(err.Error())
			return
		}
	}
	total, _, err := countTasks("/proc", "")
	if err != nil {
		p.Failed(err.Error())
		return
	}
	p.Reached("sleep", fmt.Sprintf("%d tasks in all; the job stays until it is ended", total))
	sleep(leftoverLife)
	p.Happened("sleep", leftoverLife.Milliseconds(), "nothing ended the job")
}

// make makes the child and waits for its word that it is as it has to be.
func (l leftover) make() error {
	var report [2]int
	if err := unix.Pipe2(report[:], 0); err != nil {
		return fmt.Errorf("pipe for reports: %w", err)
	}
	defer unix.Close(report[0])
	l.report = report[1]
	restore := blockSignals()
	pid, errno := l.launch()
	restore()
	if errno != 0 {
		unix.Close(report[1])
		return fmt.Errorf("make a child: %w", errno)
	}
	if err := unix.Close(report[1]); err != nil {
		return fmt.Errorf("close the pipe for reports: %w", err)
	}
	switch n, err := unix.Read(report[0], make([]byte, 1)); {
	case err != nil:
		return fmt.Errorf("hear the child: %w", err)
	case n == 0:
		return errors.New("hear the child: it ended before it was as it has to be")
	}
	if l.stops {
		if _, err := unix.Wait4(int(pid), nil, unix.WUNTRACED, nil); err != nil {
			return fmt.Errorf("wait for the child to stop: %w", err)
		}
	}
	return nil
}

// launch makes the child, which runs no Go but this.
//
//go:nosplit
//go:noinline
//go:norace
func (l *leftover) launch() (pid uintptr, errno syscall.Errno) {
	pid, errno = fork()
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	if l.session {
		if _, _, errno = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); errno != 0 {
			exitChild(1)
		}
	}
	if l.twice {
		if pid, errno = fork(); pid != 0 || errno != 0 {
			exitChild(0)
		}
	}
	hearSignals(uintptr(unix.SIGTERM), l.deaf)
	hearSignals(uintptr(unix.SIGHUP), l.deaf)
	hearSignals(uintptr(unix.SIGINT), l.deaf)
	for fd := uintptr(0); l.closes && fd < 3; fd++ {
		syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	}
	var b byte
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(l.report), uintptr(unsafe.Pointer(&b)), 1)
	if l.stops {
		pid, _, _ = syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		syscall.RawSyscall(unix.SYS_KILL, pid, uintptr(unix.SIGSTOP), 0)
	}
	life := unix.Timespec{Sec: int64(leftoverLife / time.Second)}
	syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&life)), 0, 0)
	exitChild(0)
	return 0, 0
}
