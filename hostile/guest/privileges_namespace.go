package main

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// Whoever makes a user namespace has every capability in it (user_namespaces(7)),
// and with them the calls of the kernel that are tried least.
var (
	_ = route("privileges", "user-namespace", cloneNamespaces)
	_ = route("privileges", "user-namespace-unshare", unshareUser)
)

// namespaceFlags are the flags of clone(2) that make a namespace, the user
// namespace first: the others ask for a capability that it gives.
var namespaceFlags = []struct {
	name string
	flag uintptr
}{
	{"CLONE_NEWUSER", unix.CLONE_NEWUSER}, {"CLONE_NEWNS", unix.CLONE_NEWNS}, {"CLONE_NEWPID", unix.CLONE_NEWPID},
	{"CLONE_NEWNET", unix.CLONE_NEWNET}, {"CLONE_NEWIPC", unix.CLONE_NEWIPC}, {"CLONE_NEWUTS", unix.CLONE_NEWUTS},
	{"CLONE_NEWCGROUP", unix.CLONE_NEWCGROUP},
}

// cloneNamespaces tries each flag by clone, and the first by clone3 as well.
func cloneNamespaces(p *Probe) {
	p.clone3User()
	for _, n := range namespaceFlags {
		call := "clone(" + n.name + ")"
		p.Reached(call, "in a throwaway child")
		end := tryClone(n.flag | unix.CLONE_VM | uintptr(unix.SIGCHLD))
		if p.refusedAt(call, unix.SYS_CLONE, end, byNamespaceRule(n.flag)) {
			continue
		}
		p.Happened(call, 1, "a child has it"+p.privateMount(n.flag))
	}
}

// tryClone makes a child that ends at once, in a throwaway child.
func tryClone(flags uintptr) ending {
	return tryCalls(0, []callRow{{trap: unix.SYS_CLONE, args: [6]uintptr{flags}, twice: 1}}, childTimeout)[0]
}

// byNamespaceRule tells a filter that reads clone's flags. CLONE_SIGHAND without
// CLONE_VM is EINVAL to the kernel before it asks for any capability (clone(2)).
// What says EINVAL to it alone and EPERM to it with that flag beside is no kernel.
func byNamespaceRule(flag uintptr) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		without, with := tryClone(unix.CLONE_SIGHAND), tryClone(unix.CLONE_SIGHAND|flag)
		if errno == unix.EPERM && without.errno == unix.EINVAL && with.errno == unix.EPERM {
			return hostile.EntryPointFilter, "CLONE_SIGHAND without CLONE_VM is EINVAL to the kernel, and EPERM with this flag beside it"
		}
		return nowhere(errno)
	}
}

// clone3User tries clone3, of whose flags no filter can read anything. It is to be
// absent: ENOSYS, as from a kernel that lacks it, which is all that is known
// inside. So this is told as a reading, and as an effect should it succeed.
func (p *Probe) clone3User() {
	var pin pinned
	defer pin.Unpin()
	args := &[8]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)} // struct clone_args: flags, ..., exit_signal
	pin.Pin(args)
	at := uintptr(unsafe.Pointer(args))
	end := tryCalls(0, []callRow{{trap: unix.SYS_CLONE3, args: [6]uintptr{at, unsafe.Sizeof(*args)}, twice: 1}}, childTimeout)[0]
	if end == (ending{}) {
		p.Happened("clone3(CLONE_NEWUSER)", 1, "a child has it")
		return
	}
	p.Reading(fmt.Sprintf("clone3(CLONE_NEWUSER): %s %v", errnoName(end.errno), end.signal))
}

// privateMount mounts a tmpfs where nobody else sees it, when a user namespace
// could be made.
func (p *Probe) privateMount(flag uintptr) string {
	if flag != unix.CLONE_NEWUSER {
		return ""
	}
	var pin pinned
	defer pin.Unpin()
	row := callRow{trap: unix.SYS_MOUNT, args: [6]uintptr{pin.str("none"), pin.str(p.Scratch()), pin.str("tmpfs"), 0, 0}}
	end := tryCalls(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, []callRow{row}, childTimeout)[0]
	if end.failed != nil {
		return "; no mount namespace beside it: " + end.failed.Error()
	}
	return fmt.Sprintf("; a private mount of a tmpfs there: %s %v", errnoName(end.errno), end.signal)
}

func unshareUser(p *Probe) {
	const call = "unshare(CLONE_NEWUSER)"
	p.Reached(call, "in a throwaway child")
	if !p.refusedAt(call, unix.SYS_UNSHARE, inChild(unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}, childTimeout), nowhere) {
		p.Happened(call, 1, "a child is in it")
	}
}
