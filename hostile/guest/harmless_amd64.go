package main

import "golang.org/x/sys/unix"

// Calls that only this machine has.
var (
	capabilityOnlyOfMachine = []uintptr{
		unix.SYS_MODIFY_LDT, unix.SYS__SYSCTL, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_CREATE_MODULE,
	}
	forksOfMachine = []uintptr{unix.SYS_FORK, unix.SYS_VFORK}
)
