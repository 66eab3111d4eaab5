package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("privileges", "capabilities", readCapabilities)
	_ = route("privileges", "no-new-privs", readNoNewPrivs)
)

// capabilitySets are the five sets of capabilities(7) as the status names them.
var capabilitySets = []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}

func readCapabilities(p *Probe) {
	const call = "read the capability sets of /proc/self/status"
	s, err := ownStatus()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	p.Reached(call, "")
	empty, note := noCapability(s)
	p.Reading(note)
	switch {
	case empty:
		p.Refused(hostile.InForce, hostile.ProcessCredentials, call, 0, note)
	case s["CapPrm"] == "":
		p.Failed("the status names no capability sets")
	default:
		p.Happened(call, 0, note)
	}
}

// noCapability tells whether all five sets are empty. An older guest kernel does
// not name the ambient set, which can hold nothing that the permitted set does
// not (capabilities(7)).
func noCapability(s status) (empty bool, note string) {
	empty = true
	var words []string
	for _, set := range capabilitySets {
		value, named := s[set]
		if !named && set == "CapAmb" {
			words = append(words, "CapAmb not named")
			empty = empty && isZero(s["CapPrm"])
			continue
		}
		words = append(words, set+" "+value)
		empty = empty && isZero(value)
	}
	return empty, strings.Join(words, "; ")
}

// readNoNewPrivs reads the setting, and runs the set-uid program of the order
// when there is one ("suid", a copy of the payload, mode 4755 of root).
func readNoNewPrivs(p *Probe) {
	const call = "read NoNewPrivs of /proc/self/status"
	s, err := ownStatus()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	p.Reached(call, "")
	note := fmt.Sprintf("NoNewPrivs %q", s["NoNewPrivs"])
	p.Reading(note)
	if path := p.ParamOr("suid", ""); path != "" {
		became, err := runSetUID(path)
		if err != nil {
			p.Failed("run the set-uid program: " + err.Error())
			return
		}
		if became == 0 {
			p.Happened("execve("+path+")", 0, "the set-uid program ran as uid 0; "+note)
			return
		}
		note += fmt.Sprintf("; the set-uid program ran as uid %d", became)
	}
	switch s["NoNewPrivs"] {
	case "1":
		p.Refused(hostile.InForce, hostile.ProcessCredentials, call, 0, note)
	case "":
		p.Failed("the guest kernel's status does not name NoNewPrivs; " + note)
	default:
		p.Happened(call, 0, note)
	}
}

// asSetUID, as the payload's one argument, makes it say its effective user id
// and exit.
const asSetUID = "effective-uid"

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
