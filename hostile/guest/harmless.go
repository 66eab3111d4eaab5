package main

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ones is -1 as an argument: no descriptor, no process, no address, every flag.
const ones = ^uintptr(0)

// harmless returns arguments with which the call does nothing, and to which the
// kernel has an answer other than EPERM wherever such arguments exist. Exits end
// the child that makes them, and what waits is killed at the timeout.
func harmless(trap uintptr) [6]uintptr {
	switch trap {
	case unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_TKILL: // -1 would be everybody
		return [6]uintptr{1 << 30, 1 << 30, 0}
	case unix.SYS_CLONE: // its flags may be filtered; with these the kernel says EINVAL (clone(2))
		return [6]uintptr{unix.CLONE_SIGHAND}
	case unix.SYS_EXIT, unix.SYS_EXIT_GROUP:
		return [6]uintptr{}
	}
	return [6]uintptr{ones, ones, ones, ones, ones, ones}
}

// capabilityFirst are the calls to which runsc says EPERM for want of a
// capability before it looks at any argument (measured with no filter; Debian's
// build of 2022 and one of 2026).
var capabilityFirst = slices.Concat([]uintptr{
	unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}, capabilityOnly)

// capabilityOnly are those to which it says EPERM even with every capability in
// namespaces of the caller's own: it wants them in the first ones, or has no
// more of the call than that answer. Nothing inside tells a filter from it.
var capabilityOnly = slices.Concat(capabilityOnlyOfMachine, []uintptr{
	unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_RR_GET_INTERVAL, unix.SYS_VHANGUP, unix.SYS_ADJTIMEX, unix.SYS_ACCT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_INIT_MODULE,
	unix.SYS_DELETE_MODULE, unix.SYS_QUOTACTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_CLOCK_SETTIME, unix.SYS_KEXEC_LOAD,
	unix.SYS_IOPRIO_SET, unix.SYS_IOPRIO_GET, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_KCMP, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_BPF,
})

// wantsCapability tells whether EPERM to harmless arguments may come from the
// kernel for want of a capability.
func wantsCapability(trap uintptr) bool { return slices.Contains(capabilityFirst, trap) }

// deaf tells whether EPERM may come from the kernel whatever is done.
func deaf(trap uintptr) bool {
	if trap == unix.SYS_MOUNT || trap == unix.SYS_UMOUNT2 {
		// A guest kernel without mount namespaces cannot give its caller one.
		_, err := os.Readlink("/proc/self/ns/mnt")
		return err != nil
	}
	return slices.Contains(capabilityOnly, trap)
}

// makesChild tells whether the call makes a child although its arguments ask
// for none.
func makesChild(trap uintptr) bool {
	return trap == unix.SYS_CLONE || slices.Contains(forksOfMachine, trap)
}
