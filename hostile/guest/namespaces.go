package main

import (
	"fmt"
	"os"
	"strings"

	"tenwalls.dev/harness/hostile"
)

var _ = route("namespaces", "inside", lookAround)

// lookAround looks for anything that is not the sandbox's own: a process that
// is no kin of ours, a link beside lo, a host name that is not the profile's.
func lookAround(p *Probe) {
	const call = "read /proc, /proc/net/dev and the host name"
	p.Reached(call, "")
	all, err := processes()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	links, err := ownLinks()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	b, err := os.ReadFile("/proc/sys/kernel/hostname")
	if err != nil {
		p.Failed("read the host name: " + err.Error())
		return
	}
	name, strangers := strings.TrimSpace(string(b)), strangersIn(all, os.Getpid())
	note := fmt.Sprintf("%d processes, %d of them strangers; links %s; host name %q",
		len(all), len(strangers), strings.Join(links, ", "), name)
	p.Reading(note)
	if len(strangers) == 0 && onlyLoopback(links) && name == p.ParamOr("hostname", "sandbox") {
		p.Refused(hostile.InForce, hostile.OwnNamespaces, call, int64(len(all)), note)
		return
	}
	p.Happened(call, int64(len(strangers)), note)
}
