package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("outside", "proc-sys", writeSettings)
	_ = route("outside", "proc-mem", writeOwnMemory)
)

// writeSettings opens every kernel setting for writing, and claims once for
// each answer that came, with the first setting and the number of them.
func writeSettings(p *Probe) {
	type answer struct {
		target
		count int64
	}
	answers := map[syscall.Errno]*answer{}
	var order []syscall.Errno
	err := filepath.WalkDir("/proc/sys", func(name string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err != nil || !d.Type().IsRegular() || unix.Stat(name, &st) != nil {
			return nil //nolint:nilerr // what cannot be listed cannot be written by name
		}
		if len(order) == 0 {
			p.Reached("openat(/proc/sys/..., O_WRONLY)", "the first is "+name)
		}
		fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd) //nolint:errcheck,gosec // nothing was written
		}
		errno := errnoOf(err)
		if answers[errno] == nil {
			answers[errno] = &answer{target: target{path: name, stat: st}}
			order = append(order, errno)
		}
		answers[errno].count++
		return nil
	})
	if err != nil || len(order) == 0 {
		p.Failed(fmt.Sprintf("no kernel setting is there: %v", err))
	}
	for _, errno := range order {
		a := answers[errno]
		call := "openat(" + a.path + ", O_WRONLY) and its like"
		if errno == 0 {
			p.Happened(call, a.count, "open for writing")
			continue
		}
		place, note := a.behind(errno)
		p.Refused(kindOf(errno), place, call, a.count, note)
	}
}

// writeOwnMemory writes to a page of the canary file, mapped shared and
// read-only, by way of /proc/self/mem, which on Linux passes by the page's
// protection for private mappings only (proc_pid_mem(5)).
func writeOwnMemory(p *Probe) {
	before, err := os.ReadFile(p.openFile())
	if err != nil || len(before) == 0 {
		p.Failed(fmt.Sprintf("the canary file: %d bytes, %v", len(before), err))
		return
	}
	page, err := mapFile(p.openFile())
	if err != nil {
		p.Failed(err.Error())
		return
	}
	defer unix.Munmap(page) //nolint:errcheck // goes with the process
	call := "openat(/proc/self/mem, O_RDWR)"
	p.Reached(call, "the canary file is mapped shared and read-only")
	fd, err := unix.Open("/proc/self/mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), ofOwnMemory)
		return
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to flush
	call = "pwrite64(/proc/self/mem, at the mapping)"
	p.Reached(call, "it is open")
	changed := bytes.Repeat([]byte{'!'}, len(before))
	n, err := unix.Pwrite(fd, changed, int64(uintptr(unsafe.Pointer(&page[0]))))
	if err != nil {
		p.refusedBy(call, unix.SYS_PWRITE64, errnoOf(err), ofOwnMemory)
		return
	}
	after, err := os.ReadFile(p.openFile())
	p.Happened(call, int64(n), fmt.Sprintf("the file changed: %t %v", !bytes.Equal(before, after), err))
}

func mapFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("map the canary file: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	page, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the canary file: %w", err)
	}
	return page, nil
}

// ofOwnMemory is the behind of writing the own memory: its file belongs to us,
// so that what refuses is the guest kernel's own rule for it.
func ofOwnMemory(errno syscall.Errno) (hostile.Place, string) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/mem", &st); err != nil {
		return hostile.Unknown, "stat /proc/self/mem: " + err.Error()
	}
	forbids, note := owned(&st, unix.R_OK|unix.W_OK)
	if forbids && errno == unix.EACCES {
		return hostile.FileOwnership, note
	}
	return hostile.GuestKernel, note + "; neither ownership nor the filter forbids it"
}
