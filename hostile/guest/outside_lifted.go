package main

import (
	"syscall"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// These routes are refused by the deny-all filter at once. They are tried with
// the filter's rule for files lifted, so that the wall behind it answers.
var (
	_ = route("outside", "link", linkFile)
	_ = route("outside", "chmod", changeMode)
	_ = route("outside", "mknod", makeNode)
	_ = route("outside", "remount", remountRoot)
	_ = route("outside", "mount-over", mountOver)
	_ = route("outside", "xattr", setAttribute)
)

func linkFile(p *Probe) {
	from, to := p.openFile(), p.openFile()+"-linked"
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{dirAt, pin.str(from), dirAt, pin.str(to)}
	p.onCanary("linkat("+from+", "+to+")", unix.SYS_LINKAT, args, byMount(to))
}

func changeMode(p *Probe) {
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{dirAt, pin.str(p.openFile()), 0o646}
	p.onCanary("fchmodat("+p.openFile()+", 0646)", unix.SYS_FCHMODAT, args, byMount(p.openFile()))
}

// makeNode makes the node of /dev/null, a harmless device.
func makeNode(p *Probe) {
	node := p.openFile() + "-node"
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{dirAt, pin.str(node), unix.S_IFCHR | 0o600, uintptr(unix.Mkdev(1, 3))}
	where := func(errno syscall.Errno) (hostile.Place, string) {
		if errno == unix.EPERM {
			return byNoCapability("CAP_MKNOD")(errno)
		}
		return byMount(node)(errno)
	}
	p.onCanary("mknodat("+node+", S_IFCHR, 1:3)", unix.SYS_MKNODAT, args, where)
}

func remountRoot(p *Probe) {
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{pin.str("none"), pin.str("/"), pin.str("none"), unix.MS_REMOUNT | unix.MS_BIND, 0}
	p.onCanary("mount(/, MS_REMOUNT|MS_BIND)", unix.SYS_MOUNT, args, byNoCapability("CAP_SYS_ADMIN"))
}

func mountOver(p *Probe) {
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{pin.str("none"), pin.str(p.openDir()), pin.str("tmpfs"), 0, 0}
	if p.onCanary("mount("+p.openDir()+", tmpfs)", unix.SYS_MOUNT, args, byNoCapability("CAP_SYS_ADMIN")) {
		unix.Unmount(p.openDir(), unix.MNT_DETACH) //nolint:errcheck,gosec // the claim is made
	}
}

func setAttribute(p *Probe) {
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{pin.str(p.openFile()), pin.str("user.tenwalls"), pin.str("1"), 1, 0}
	p.onCanary("setxattr("+p.openFile()+", user.tenwalls)", unix.SYS_SETXATTR, args, byMount(p.openFile()))
}
