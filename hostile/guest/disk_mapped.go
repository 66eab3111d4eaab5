package main

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// fillMapped makes a file far larger than scratch, which costs nothing while it
// is sparse, and has a child write to it page by page through a shared mapping.
// A page that can't be had ends the child by SIGBUS (mmap(2)), and the child
// counts the bytes of the pages before it: a gofer's stat tells no blocks, it
// computes them from the size.
func fillMapped(p *Probe) {
	const call = "ftruncate, mmap(MAP_SHARED), touch"
	granted, before, ok := p.beforeFilling(call)
	if !ok {
		return
	}
	fd, remove, err := named(p.Scratch())
	if err != nil {
		p.Failed("create a file in scratch: " + err.Error())
		return
	}
	defer remove()
	defer unix.Close(fd)
	size := granted + diskStep
	if err := unix.Ftruncate(fd, size); err != nil {
		p.filled(call, 0, granted, before, kindOf(errnoOf(err)), "ftruncate: "+err.Error())
		return
	}
	b, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		p.Failed("map the file: " + err.Error())
		return
	}
	// Under ptrace a runsc keeps the blocks of a file that was mapped and removed.
	defer unix.Ftruncate(fd, 0)
	defer unix.Munmap(b)
	end, touched, err := touchInChild(b)
	if err != nil {
		p.Failed("touch the file in a child: " + err.Error())
		return
	}
	kind, answer := hostile.Other, fmt.Sprintf("the child ended by %v", end)
	if end == unix.SIGBUS {
		kind, answer = hostile.SIGBUS, "a child ended by SIGBUS"
	}
	p.filled(call, touched, granted, before, kind, answer)
}

// touchInChild writes to each page of b in a child and returns the signal that
// ended it, or 0, and how many bytes of pages it wrote to.
func touchInChild(b []byte) (end unix.Signal, touched int64, err error) {
	meters, err := newMeters(1)
	if err != nil {
		return 0, 0, err
	}
	restore := blockSignals()
	pid, errno := toucher(b, &meters[0].used)
	restore()
	if errno != 0 {
		return 0, 0, errno
	}
	var status unix.WaitStatus
	for err = unix.EINTR; err == unix.EINTR; {
		_, err = unix.Wait4(int(pid), &status, 0, nil)
	}
	if err == nil && status.Signaled() {
		end = status.Signal()
	}
	return end, meters[0].used, err
}

// toucher makes the child. SIGBUS is blocked in it as every signal is, and a
// fault whose signal is blocked ends the process whatever its handler
// (sigprocmask(2)).
//
//go:nosplit
//go:noinline
//go:norace
func toucher(b []byte, touched *int64) (pid uintptr, errno syscall.Errno) {
	pid, errno = fork()
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
		*touched = int64(i) + 4096
	}
	exitChild(0)
	return 0, 0
}
