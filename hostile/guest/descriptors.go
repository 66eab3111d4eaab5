package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("credentials", "inherited-descriptor", func(p *Probe) { lookForDescriptors(p, leadsToFile) })
	_ = route("connection", "inherited-descriptor", func(p *Probe) { lookForDescriptors(p, leadsToSocket) })
)

// maxDescriptors bounds the scan; it is above what any runner leaves open by
// accident, and each one asked is one system call.
const maxDescriptors = 1024

// descriptor is one that was open when the payload started.
type descriptor struct {
	fd    int
	mode  uint32 // st_mode
	flags int    // F_GETFL
	name  string // what /proc/self/fd says
}

func (d descriptor) String() string {
	return fmt.Sprintf("%d: %s, mode %o, flags %#x", d.fd, d.name, d.mode, d.flags)
}

// inherited lists the descriptors that came over execve(2): those without
// close-on-exec, since the Go runtime sets it on every one of its own.
func inherited() []descriptor {
	var out []descriptor
	for fd := range maxDescriptors {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		d := descriptor{fd: fd}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil {
			d.mode = st.Mode
		}
		d.flags, _ = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		d.name, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		out = append(out, d)
	}
	return out
}

// leadsToFile tells whether a descriptor may lead to a file: any but the three
// standard ones, and of those a folder, a disk, or a regular file to read from.
func leadsToFile(d descriptor) bool {
	switch d.mode & unix.S_IFMT {
	case unix.S_IFDIR, unix.S_IFBLK:
		return true
	case unix.S_IFREG:
		return d.fd > 2 || d.flags&unix.O_ACCMODE != unix.O_WRONLY
	}
	return d.fd > 2
}

func leadsToSocket(d descriptor) bool { return d.mode&unix.S_IFMT == unix.S_IFSOCK }

// lookForDescriptors claims every inherited descriptor that leads somewhere, or
// that there is none.
func lookForDescriptors(p *Probe, leads func(descriptor) bool) {
	call := fmt.Sprintf("fcntl(0..%d, F_GETFD)", maxDescriptors-1)
	p.Reached(call, "descriptors without close-on-exec came over execve")
	all := inherited()
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.String()
	}
	for _, d := range all {
		if leads(d) {
			p.Happened(call, int64(d.fd), "left open: "+d.String()+theft(d))
			return
		}
	}
	p.Refused(hostile.Absent, hostile.Descriptors, call, int64(len(all)), "inherited: "+strings.Join(names, "; "))
}

// theft reads a little through a descriptor that was left open.
func theft(d descriptor) string {
	buf := make([]byte, 256)
	switch d.mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFBLK:
		if n, err := unix.Pread(d.fd, buf, 0); err == nil {
			return fmt.Sprintf("; read %q", buf[:n])
		}
	case unix.S_IFDIR:
		entries, err := os.ReadDir(fmt.Sprintf("/proc/self/fd/%d", d.fd))
		if err == nil {
			return fmt.Sprintf("; a folder of %d entries", len(entries))
		}
	}
	return ""
}
