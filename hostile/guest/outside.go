package main

import (
	"fmt"
	"path"
	"slices"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("outside", "create", func(p *Probe) { p.createOn(isData) })
	_ = route("outside", "pseudo", func(p *Probe) { p.createOn(isPseudo) })
	_ = route("outside", "append", func(p *Probe) {
		p.openFiles("O_WRONLY|O_APPEND", unix.O_WRONLY|unix.O_APPEND)
	})
	_ = route("outside", "truncate", func(p *Probe) {
		p.openFiles("O_WRONLY|O_TRUNC", unix.O_WRONLY|unix.O_TRUNC)
	})
	_ = route("outside", "rename", renameFile)
	_ = route("outside", "unnamed-file", unnamedFile)
)

// openDir is the canary folder of mode 0777 on the root mount. In it stands
// "file", owned by us with mode 0666, so that ownership allows every act on it.
func (p *Probe) openDir() string { return p.ParamOr("open_dir", "/tenwalls/open") }

func (p *Probe) openFile() string { return path.Join(p.openDir(), "file") }

// openDirs are the folders in which ownership allows us every act, each on a
// mount of its own: the canary folder, and that of the inputs when there are any.
func (p *Probe) openDirs() []string {
	dirs := []string{p.openDir()}
	if inputs := p.ParamOr("inputs_dir", ""); inputs != "" {
		dirs = append(dirs, inputs)
	}
	return dirs
}

// isPseudo tells whether a mount shows the kernel's own objects and no data.
func isPseudo(m *mountinfo.Info) bool {
	switch m.FSType {
	case "proc", "sysfs", "dev", "devtmpfs", "devpts", "cgroup", "cgroup2", "mqueue":
		return true
	}
	return m.Mountpoint == "/dev" // a tmpfs of device nodes in older builds of runsc
}

func isData(m *mountinfo.Info) bool { return !isPseudo(m) }

// target is a place to write on one mount: a folder, or the mounted file.
type target struct {
	mount *mountinfo.Info
	path  string
	stat  unix.Stat_t
}

// targets returns a place on each wanted mount but scratch, where ownership
// allows the writing if there is one: an open folder on its mount, else the
// mount's own root. It fails when the inputs are no
// mount of their own.
func (p *Probe) targets(wanted func(*mountinfo.Info) bool) ([]target, error) {
	mounts, err := ownMounts()
	if err != nil {
		return nil, err
	}
	for _, dir := range p.openDirs()[1:] {
		if on := mountOf(mounts, dir); on == nil || on.Mountpoint == "/" {
			return nil, fmt.Errorf("%s is on no mount of its own", dir)
		}
	}
	var out []target
	for i, m := range mounts {
		if m.Mountpoint == p.Scratch() || !wanted(m) || hidden(mounts, i) {
			continue
		}
		t := target{mount: m, path: m.Mountpoint}
		for _, dir := range p.openDirs() {
			if on := mountOf(mounts, dir); on != nil && on.ID == m.ID && unix.Stat(dir, &t.stat) == nil {
				t.path = dir
			}
		}
		if err := unix.Stat(t.path, &t.stat); err != nil {
			return nil, fmt.Errorf("stat mount %s: %w", t.path, err)
		}
		out = append(out, t)
	}
	return out, nil
}

// hidden tells whether a later mount stands on the same mount point.
func hidden(mounts []*mountinfo.Info, i int) bool {
	for _, later := range mounts[i+1:] {
		if later.Mountpoint == mounts[i].Mountpoint {
			return true
		}
	}
	return false
}

// behind tells which wall refused writing there: ownership is asked before the
// mount, by runsc as by Linux.
func (t target) behind(errno syscall.Errno) (hostile.Place, string) {
	want := uint32(unix.W_OK)
	if t.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		want |= unix.X_OK
	}
	if errno == unix.EACCES {
		return byOwnership(&t.stat, want)(errno)
	}
	return byMount(t.path)(errno)
}

// createOn creates a file on each of those mounts, or opens a mounted file to
// write.
func (p *Probe) createOn(wanted func(*mountinfo.Info) bool) {
	all, err := p.targets(wanted)
	if err != nil {
		p.Failed(err.Error())
		return
	}
	for _, t := range all {
		name, flags, words := path.Join(t.path, "tenwalls-"+p.route), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, "O_CREAT|O_EXCL|O_WRONLY"
		if t.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			name, flags, words = t.path, unix.O_WRONLY, "O_WRONLY"
		}
		call := fmt.Sprintf("openat(%s, %s) on %s", name, words, t.mount.Mountpoint)
		_, note := owned(&t.stat, unix.W_OK)
		p.Reached(call, fmt.Sprintf("%s %s; %s: %s", t.mount.FSType, t.mount.Options, t.path, note))
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o600)
		if err != nil {
			p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), t.behind)
			continue
		}
		p.wrote(call, fd)
	}
}

// wrote writes to a file outside that was opened for it, claims so, and closes
// it. What was written stays: the host compares the trees after the job, and
// would not see what was undone.
func (p *Probe) wrote(call string, fd int) {
	n, _ := unix.Write(fd, []byte(mark)) //nolint:errcheck // the opening is the act
	p.Happened(call, int64(max(n, 0)), "open for writing")
	unix.Close(fd) //nolint:errcheck,gosec // the claim is made
}

const mark = "tenwalls was here\n"

// openFiles opens the canary file, and every file that is a mount of its own.
func (p *Probe) openFiles(words string, flags int) {
	all, err := p.targets(isData)
	if err != nil {
		p.Failed(err.Error())
		return
	}
	for _, t := range all {
		if slices.Contains(p.openDirs(), t.path) {
			t.path = path.Join(t.path, "file")
			if err := unix.Stat(t.path, &t.stat); err != nil {
				p.Failed("the canary file: " + err.Error())
				continue
			}
		} else if t.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			continue
		}
		call := fmt.Sprintf("openat(%s, %s) on %s", t.path, words, t.mount.Mountpoint)
		_, note := owned(&t.stat, unix.W_OK)
		p.Reached(call, t.mount.FSType+" "+t.mount.Options+"; "+note)
		fd, err := unix.Open(t.path, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), t.behind)
			continue
		}
		p.wrote(call, fd)
	}
}

// onCanary makes one call on the canary file in a throwaway child, and claims
// how it ended.
func (p *Probe) onCanary(call string, trap uintptr, args [6]uintptr, where behind) bool {
	return p.onFile(p.openFile(), call, trap, args, where)
}

// onFile makes one call on a file or folder in a throwaway child, and claims
// how it ended.
func (p *Probe) onFile(name, call string, trap uintptr, args [6]uintptr, where behind) bool {
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		p.Failed("the canary file: " + err.Error())
		return false
	}
	_, note := owned(&st, unix.W_OK)
	p.Reached(call, note)
	if p.refusedAt(call, trap, inChild(trap, args, childTimeout), where) {
		return false
	}
	p.Happened(call, 1, note)
	return true
}

func renameFile(p *Probe) {
	from, to := p.openFile(), p.openFile()+"-renamed"
	var pin pinned
	defer pin.Unpin()
	there := [6]uintptr{dirAt, pin.str(from), dirAt, pin.str(to)}
	if p.onCanary("renameat2("+from+", "+to+")", unix.SYS_RENAMEAT2, there, byMount(from)) {
		putBack(from)
	}
}

// putBack makes a file where other routes need one. What was renamed stays
// beside it, for the host to see.
func putBack(name string) {
	if fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o666); err == nil {
		unix.Close(fd) //nolint:errcheck,gosec // the claim is made
	}
}

// unnamedFile opens a file without a name in the canary folder. gVisor has no
// such file on any mount, which the same call in scratch shows.
func unnamedFile(p *Probe) {
	call := "openat(" + p.openDir() + ", O_TMPFILE|O_RDWR)"
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{dirAt, pin.str(p.openDir()), unix.O_TMPFILE | unix.O_RDWR | unix.O_CLOEXEC, 0o600}
	p.onCanary(call, unix.SYS_OPENAT, args, func(errno syscall.Errno) (hostile.Place, string) {
		args[1] = pin.str(p.Scratch())
		if end := inChild(unix.SYS_OPENAT, args, childTimeout); errno != unix.EROFS && end.errno == errno {
			return hostile.GuestKernel, "the same call says the same in scratch, which may be written: " + errnoName(errno)
		}
		return byMount(p.openDir())(errno)
	})
}
