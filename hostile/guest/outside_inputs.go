package main

import (
	"path"

	"golang.org/x/sys/unix"
)

// Parameters: "inputs_dir", a folder of mode 0777 among the job's inputs. In it
// stand "file" and one file for each of these routes, all ours and of mode 0666,
// so that ownership allows every act and the mount alone refuses it. What is
// done to them is left as it is: the tree is this job's alone, and the host
// looks at it when the job has ended.
var (
	_ = route("outside", "inputs-create", createInput)
	_ = route("outside", "inputs-append", appendInput)
	_ = route("outside", "inputs-rename", renameInput)

	// Behind the filter's rule for files.
	_ = route("outside", "inputs-chmod", changeInputMode)
	_ = route("outside", "inputs-remount", remountInputs)
)

func (p *Probe) input(name string) string { return path.Join(p.Param("inputs_dir"), name) }

func createInput(p *Probe) {
	dir, name := p.Param("inputs_dir"), p.input("created")
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{dirAt, pin.str(name), unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY | unix.O_CLOEXEC, 0o600}
	p.onFile(dir, "openat("+name+", O_CREAT|O_EXCL|O_WRONLY)", unix.SYS_OPENAT, args, byMount(dir))
}

func appendInput(p *Probe) {
	name, text := p.input("append"), []byte("appended by the job\n")
	call := "openat(" + name + ", O_WRONLY|O_APPEND)"
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		p.Failed("the input: " + err.Error())
		return
	}
	_, note := owned(&st, unix.W_OK)
	p.Reached(call, note)
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), byMount(name))
		return
	}
	defer unix.Close(fd) //nolint:errcheck // the claim is made
	n, err := unix.Write(fd, text)
	p.Happened(call+", write", int64(max(n, 0)), "open for writing; then "+errnoName(errnoOf(err)))
}

func renameInput(p *Probe) {
	from, to := p.input("rename"), p.input("renamed")
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{dirAt, pin.str(from), dirAt, pin.str(to)}
	p.onFile(from, "renameat2("+from+", "+to+")", unix.SYS_RENAMEAT2, args, byMount(from))
}

func changeInputMode(p *Probe) {
	name := p.input("chmod")
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{dirAt, pin.str(name), 0o600}
	p.onFile(name, "fchmodat("+name+", 0600)", unix.SYS_FCHMODAT, args, byMount(name))
}

// remountInputs asks for a writable mount and, should it get one, writes there:
// a mount that was changed inside shows on the host by what follows.
func remountInputs(p *Probe) {
	point := path.Dir(p.Param("inputs_dir"))
	var pin pinned
	defer pin.Unpin()
	args := [6]uintptr{pin.str("none"), pin.str(point), pin.str("none"), unix.MS_REMOUNT | unix.MS_BIND, 0}
	if !p.onFile(point, "mount("+point+", MS_REMOUNT|MS_BIND)", unix.SYS_MOUNT, args, byNoCapability("CAP_SYS_ADMIN")) {
		return
	}
	fd, err := unix.Open(p.input("remounted"), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		p.Reading("after the remount a file could not be made: " + errnoName(errnoOf(err)))
		return
	}
	unix.Close(fd) //nolint:errcheck,gosec // it is there
}
