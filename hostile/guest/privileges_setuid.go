package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// Parameters: "suid", the path of a copy of the payload, mode 4755 of root.
var (
	_ = route("privileges", "no-new-privs", readNoNewPrivs)
	_ = route("privileges", "set-uid-behind", becomeRootByProgram)
)

// readNoNewPrivs reads the setting, and runs the set-uid program to see that it
// gains nothing. That shows the effect and not whose it is: a runsc that is not
// told otherwise ignores set-user-id bits anyway.
func readNoNewPrivs(p *Probe) {
	const call = "read NoNewPrivs"
	s, err := ownStatus()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	path := p.Param("suid")
	p.Reached(call+"; execve("+path+")", "")
	setting, how := noNewPrivs(s)
	note := fmt.Sprintf("NoNewPrivs %q, %s", setting, how)
	became, err := runSetUID(path)
	if err != nil {
		p.Failed("run the set-uid program: " + err.Error())
		return
	}
	note += fmt.Sprintf("; the set-uid program ran as uid %d", became)
	p.Reading(note)
	switch {
	case became != os.Getuid():
		p.Happened("execve("+path+")", 0, note)
	case setting == "1":
		p.Refused(hostile.InForce, hostile.ProcessCredentials, call, 0, note)
	case setting == "":
		p.Failed("the guest kernel does not tell its setting; " + note)
	default:
		p.Happened(call, 0, note)
	}
}

// noNewPrivs is the setting, "1" or "0", and how it was read; empty when neither
// way tells. Older guest kernels name it in no status, and are asked by prctl(2)
// then, which the files lift lets through.
func noNewPrivs(s status) (setting, how string) {
	if v, named := s["NoNewPrivs"]; named {
		return v, "by /proc/self/status"
	}
	v, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0)
	if errno != 0 {
		return "", "prctl(PR_GET_NO_NEW_PRIVS): " + errnoName(errno)
	}
	return fmt.Sprint(v), "by prctl(PR_GET_NO_NEW_PRIVS), since /proc/self/status does not name it"
}

// becomeRootByProgram runs the set-uid program where the runtime was told to
// heed set-user-id bits, so that no_new_privs alone refuses it. Nothing inside
// shows that the runtime was told; the harness names it as a lift.
func becomeRootByProgram(p *Probe) {
	path := p.Param("suid")
	call := "execve(" + path + ")"
	mounts, err := ownMounts()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	m := mountOf(mounts, path)
	if m == nil || hasOption(m.Options, "nosuid") {
		p.Failed(fmt.Sprintf("no mount that heeds set-user-id bits holds %s: %+v", path, m))
		return
	}
	s, err := ownStatus()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	setting, how := noNewPrivs(s)
	note := fmt.Sprintf("%s is mounted %s; NoNewPrivs %q, %s", m.Mountpoint, m.Options, setting, how)
	p.Reached(call, note)
	became, err := runSetUID(path)
	note += fmt.Sprintf("; it ran as uid %d", became)
	switch {
	case err != nil:
		p.Failed("run the set-uid program: " + err.Error())
	case became != os.Getuid():
		p.Happened(call, 0, note)
	case setting == "1":
		p.Refused(hostile.InForce, hostile.ProcessCredentials, call, 0, note)
	default:
		p.Refused(hostile.InForce, hostile.Unknown, call, 0, note+": something other than no_new_privs refused it")
	}
}

// asSetUID, as the payload's one argument, makes it say its effective user id
// and exit.
const asSetUID = "effective-uid"

// elevated tells whether this process was started as another user than its
// caller's, by the kernel's auxiliary vector (getauxval(3), AT_UID and AT_EUID):
// the filter refuses geteuid(2), and may end who calls it.
func elevated() bool {
	const uid, euid = 11, 12
	vector, err := unix.Auxv()
	ids := map[uintptr]uintptr{}
	for _, pair := range vector {
		ids[pair[0]] = pair[1]
	}
	return err != nil || ids[uid] != ids[euid]
}

func sayEffectiveUID() error {
	s, err := ownStatus()
	if err != nil {
		return err
	}
	ids := strings.Fields(s["Uid"]) // real, effective, saved, file system
	if len(ids) != 4 {
		return fmt.Errorf("own status: Uid %q has not four ids", s["Uid"])
	}
	_, err = fmt.Println(ids[1])
	return err
}

// runSetUID runs the set-uid program and returns the effective user id it says.
func runSetUID(path string) (uid int, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("stat %s: %w", path, err)
	}
	if st.Uid != 0 || st.Mode&unix.S_ISUID == 0 {
		return 0, fmt.Errorf("%s is uid %d mode %04o, not set-uid root", path, st.Uid, st.Mode&0o7777)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("pipe: %w", err)
	}
	defer r.Close() //nolint:errcheck // read only
	child, err := syscall.ForkExec(path, []string{path, asSetUID}, &syscall.ProcAttr{Files: []uintptr{0, w.Fd(), 2}})
	w.Close() //nolint:errcheck,gosec // the child has its own
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	_, scanErr := fmt.Fscan(r, &uid)
	// Not os.Process: it waits by waitid(2), which the filter refuses.
	if _, err := syscall.Wait4(child, nil, 0, nil); err != nil {
		return 0, fmt.Errorf("wait: %w", err)
	}
	if scanErr != nil {
		return 0, fmt.Errorf("read its answer: %w", scanErr)
	}
	return uid, nil
}
