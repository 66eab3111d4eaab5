package main

import "golang.org/x/sys/unix"

const ones = ^uintptr(0)

// harmless returns arguments with which the call does nothing, and for which
// the kernel has an answer other than EPERM wherever such arguments exist.
func harmless(trap uintptr) [6]uintptr {
	switch trap {
	case unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_TKILL: // -1 would be everybody
		return [6]uintptr{1 << 30, 1 << 30, 0}
	case unix.SYS_EXIT, unix.SYS_EXIT_GROUP:
		return [6]uintptr{}
	}
	return [6]uintptr{ones, ones, ones, ones, ones, ones}
}

func makesChild(trap uintptr) uintptr {
	if trap == 57 || trap == 58 {
		return 1
	}
	return 0
}
func alwaysEPERM(trap uintptr) bool     { return false }
func needsCapability(trap uintptr) bool { return false }
