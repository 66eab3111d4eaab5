package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("identity", "nobody", readIdentity)
	_ = route("identity", "setuid", becomeRoot)
)

// readIdentity compares the real, effective, saved and file system ids with the
// profile's, 65534 for user and group, and wants no supplementary group.
func readIdentity(p *Probe) {
	const call = "read Uid, Gid and Groups of /proc/self/status"
	s, err := ownStatus()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	p.Reached(call, "")
	note := fmt.Sprintf("Uid %s; Gid %s; Groups %q", s["Uid"], s["Gid"], s["Groups"])
	p.Reading(note)
	if isNobody(s, p.ParamOr("uid", "65534")) {
		p.Refused(hostile.InForce, hostile.ProcessCredentials, call, 0, note)
		return
	}
	p.Happened(call, 0, note)
}

// isNobody tells whether every id of the status is id, and no group is beside.
func isNobody(s status, id string) bool {
	ids := append(strings.Fields(s["Uid"]), strings.Fields(s["Gid"])...)
	for _, have := range append(slices.Clone(ids), strings.Fields(s["Groups"])...) {
		if have != id {
			return false
		}
	}
	return len(ids) == 8
}

// becomeRoot calls setuid(2) in a throwaway child, so that the payload stays who
// it is.
func becomeRoot(p *Probe) {
	const call = "setuid(0)"
	p.Reached(call, "nothing else is needed")
	if !p.refusedAt(call, unix.SYS_SETUID, inChild(unix.SYS_SETUID, [6]uintptr{}, childTimeout), byNoCapability("CAP_SETUID")) {
		p.Happened(call, 0, "the child's user id is 0")
	}
}
