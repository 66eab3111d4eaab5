package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// Parameters: "scratch_bytes", the granted size of scratch (64 MiB when
// missing). The count of every claim is bytes. A route that gets one step beyond
// the granted bytes has shown that the wall fell, and stops there. Each removes
// what it made, so that the next finds scratch empty.
var (
	_ = route("disk", "large-file", func(p *Probe) { fill(p, "write", named, writing) })
	_ = route("disk", "small-files", fillSmall)
	_ = route("disk", "fallocate", func(p *Probe) { fill(p, "fallocate", named, reserving) })
	_ = route("disk", "mmap", fillMapped)
	_ = route("disk", "unnamed-file", func(p *Probe) { fill(p, "open(O_TMPFILE), write", unnamed, writing) })
	_ = route("disk", "deleted-file", func(p *Probe) { fill(p, "unlink, write", deleted, writing) })
)

const (
	diskStep  = 1 << 20
	smallFile = 256 << 10
)

// opening makes an empty file in scratch and returns how to remove it.
type opening func(dir string) (fd int, remove func(), err error)

// growing adds at most n bytes at offset off and returns how many it added.
type growing func(fd int, off, n int64) (int64, error)

// fill makes one file as large as it gets.
func fill(p *Probe, call string, open opening, grow growing) {
	granted, before, ok := p.beforeFilling(call)
	if !ok {
		return
	}
	fd, remove, err := open(p.Scratch())
	if err != nil {
		p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), byScratch(p.Scratch()))
		return
	}
	defer remove()
	defer unix.Close(fd)
	var size int64
	for err == nil && size <= granted {
		var n int64
		n, err = grow(fd, size, diskStep)
		size += n
	}
	p.filled(call, size, granted, before, kindOf(errnoOf(err)), errnoName(errnoOf(err)))
}

// beforeFilling claims that scratch is there and empty.
func (p *Probe) beforeFilling(call string) (granted int64, before unix.Statfs_t, ok bool) {
	granted = numberOr(p, "scratch_bytes", 64<<20)
	if err := unix.Statfs(p.Scratch(), &before); err != nil {
		p.Failed("statfs of scratch: " + err.Error())
		return 0, before, false
	}
	p.Reached(call, fmt.Sprintf("scratch has %d bytes, %d of them free (statfs)", sizeOf(before), freeOf(before)))
	return granted, before, true
}

// filled claims how far the filling came.
func (p *Probe) filled(call string, size, granted int64, before unix.Statfs_t, kind hostile.Kind, answer string) {
	var now unix.Statfs_t
	if err := unix.Statfs(p.Scratch(), &now); err != nil {
		p.Failed("statfs of scratch: " + err.Error())
		return
	}
	note := fmt.Sprintf("%s after %d bytes; scratch has %d bytes, %d of them free now and %d before (statfs)",
		answer, size, sizeOf(now), freeOf(now), freeOf(before))
	if size > granted {
		p.Happened(call, size, fmt.Sprintf("%d bytes granted; %s", granted, note))
		return
	}
	p.Refused(kind, quotaPlace(kind, now, granted), call, size, note)
}

// quotaPlace names the scratch quota only where scratch itself is full and its
// size is the granted one: ENOSPC comes from a full host as well.
func quotaPlace(kind hostile.Kind, now unix.Statfs_t, granted int64) hostile.Place {
	if (kind == hostile.ENOSPC || kind == hostile.SIGBUS) && freeOf(now) == 0 && sizeOf(now) == granted {
		return hostile.ScratchQuota
	}
	return hostile.Unknown
}

func sizeOf(s unix.Statfs_t) int64 { return int64(s.Blocks) * int64(s.Bsize) }
func freeOf(s unix.Statfs_t) int64 { return int64(s.Bavail) * int64(s.Bsize) }

func named(dir string) (int, func(), error) {
	path := filepath.Join(dir, "filler")
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	return fd, func() { unix.Unlink(path) }, err
}

func unnamed(dir string) (int, func(), error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	return fd, func() {}, err
}

func deleted(dir string) (int, func(), error) {
	fd, remove, err := named(dir)
	if err == nil {
		remove()
	}
	return fd, func() {}, err
}

var diskFiller = make([]byte, diskStep)

func writing(fd int, _, n int64) (int64, error) {
	for {
		m, err := unix.Write(fd, diskFiller[:n])
		if err != unix.EINTR {
			return int64(max(m, 0)), err
		}
	}
}

// reserving asks for less and less down to a page, since a reservation that
// does not fit is refused as a whole (fallocate(2)).
func reserving(fd int, off, n int64) (int64, error) {
	for {
		err := unix.Fallocate(fd, 0, off, n)
		if err == nil {
			return n, nil
		}
		if n /= 2; err != unix.EINTR && n < int64(os.Getpagesize()) {
			return 0, err
		}
	}
}

// byScratch is the behind of an open in scratch: where a plain file can be
// created beside it, it is this mount that has no such files.
func byScratch(dir string) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		fd, remove, err := named(dir)
		if err != nil || errno != unix.EOPNOTSUPP {
			return nowhere(errno)
		}
		unix.Close(fd)
		remove()
		return hostile.ScratchMount, "a plain file can be created in the same folder"
	}
}

// fillSmall makes files until one more is refused.
func fillSmall(p *Probe) {
	const call = "create and write many files"
	granted, before, ok := p.beforeFilling(call)
	if !ok {
		return
	}
	var size, files int64
	var err error
	for ; err == nil && size <= granted; files++ {
		path := filepath.Join(p.Scratch(), "filler"+strconv.FormatInt(files, 10))
		var fd int
		if fd, err = unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600); err != nil {
			break
		}
		defer unix.Unlink(path)
		for room := int64(smallFile); room > 0 && err == nil; {
			var n int64
			n, err = writing(fd, 0, room)
			size, room = size+n, room-n
		}
		unix.Close(fd)
	}
	p.filled(call, size, granted, before, kindOf(errnoOf(err)), fmt.Sprintf("%s in file %d", errnoName(errnoOf(err)), files))
}
