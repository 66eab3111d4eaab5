package main

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Parameters: "open_dir", the folder of mode 0777 on the root file system, and
// "hold_ms", how long what was written stays (not at all when missing). No
// byte is granted in these places, so that the first step that is written shows
// that the wall fell. The count of every claim is bytes.
var (
	_ = route("disk", "tmp", func(p *Probe) { fillClosed(p, "/tmp") })
	_ = route("disk", "dev-shm", func(p *Probe) { fillClosed(p, "/dev/shm") })
	_ = route("disk", "root", func(p *Probe) { fillClosed(p, p.ParamOr("open_dir", "/tenwalls/open")) })
)

// fillClosed writes where nothing may be written. The folder has to be one whose
// ownership lets the payload write: it then is the mount that refuses.
func fillClosed(p *Probe, dir string) {
	path := filepath.Join(dir, "filler")
	call := "open(" + path + ", O_CREAT), write"
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		p.Failed(fmt.Sprintf("stat %s: %v", dir, err))
		return
	}
	forbids, note := owned(&st, 3)
	if forbids {
		note += ": ownership answers before the mount"
	}
	p.Reached(call, note)
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	if err != nil && forbids {
		p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), byOwnership(&st, 3))
		return
	}
	if err != nil {
		p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), byMount(dir))
		return
	}
	defer unix.Unlink(path)
	defer unix.Close(fd)
	var size int64
	for err == nil && size < bound(p, diskStep) {
		var n int64
		n, err = writing(fd, size, diskStep)
		size += n
	}
	p.Happened(call, size, fmt.Sprintf("no byte granted here; then %s", errnoName(errnoOf(err))))
	// What was written stays for a moment, so that the host can see it too.
	span := unix.NsecToTimespec(numberOr(p, "hold_ms", 0) * 1e6)
	unix.Nanosleep(&span, nil) //nolint:errcheck,gosec // the claim is made
}
