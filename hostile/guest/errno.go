package main

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// kindOf names an errno in the vocabulary's words; hostile.Other when it has no
// word for it, and then the note has to name it (see errnoName).
func kindOf(errno syscall.Errno) hostile.Kind {
	if name := hostile.Kind(errnoName(errno)); errno != 0 && errnoKinds[name] {
		return name
	}
	return hostile.Other
}

// errnoKinds are the kinds that are names of errno(3).
var errnoKinds = func() map[hostile.Kind]bool {
	m := map[hostile.Kind]bool{}
	for _, k := range hostile.Kinds() {
		if k != "" && k[0] == 'E' {
			m[k] = true
		}
	}
	return m
}()

// errnoOf returns the errno inside an error of the standard library or of
// golang.org/x/sys/unix; 0 when there is none.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	if errors.Is(err, fs.ErrNotExist) {
		return unix.ENOENT
	}
	return 0
}

// errnoName names any errno, also one without a kind of its own.
func errnoName(errno syscall.Errno) string {
	switch errno {
	case 0:
		return "success"
	case unix.EOPNOTSUPP: // unix calls it by its other name, ENOTSUP
		return "EOPNOTSUPP"
	}
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return errno.Error()
}
