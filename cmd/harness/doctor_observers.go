package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
	"tenwalls.dev/harness/suites"
)

// cleanUp names the finding that something of the doctor's own is left.
const cleanUp = "clean-up"

// examineObservers lets a run's scene be made and every observer show on it that
// it sees, and says of each how that went.
func examineObservers(ctx context.Context, cfg runsc.Config) (out []finding) {
	x, err := suites.Examine(ctx, cfg)
	for _, p := range x.Parts {
		out = append(out, ofPart(p))
	}
	for _, c := range x.Controls {
		out = append(out, ofControl(c))
	}
	if len(x.Controls) > 0 {
		out = append(out, finding{Name: "left to a run", OK: true, Note: true, Seen: "observers " + strings.Join(suites.BesideSandbox(), ", ") + ": their control is a sandbox of it"})
	}
	if err != nil {
		out = append(out, finding{Name: cleanUp, Seen: err.Error(), Remedy: "remove by hand what is named; the next start tries again"})
	}
	return out
}

func ofPart(p suites.Part) finding {
	// Without the account, swap is simply not limited: that is for information.
	f := finding{Name: p.Name, OK: p.Err == nil, Seen: p.Seen, Note: p.Name == suites.PartSwap}
	if p.Err != nil {
		f.Seen, f.Remedy = p.Err.Error(), partRemedies[p.Name]
	}
	return f
}

func ofControl(c observers.Control) finding {
	f := finding{Name: "observer " + c.Observer, OK: c.Passed, Seen: "saw " + c.Seen}
	if !c.Passed {
		f.Seen = fmt.Sprintf("%s: wanted %s, saw %s: %s", c.Effect, c.Want, c.Seen, c.Reason)
		f.Remedy = remedies[c.Observer]
	}
	return f
}

// partRemedies say what to do when a part of the scene cannot be made.
var partRemedies = map[string]string{
	suites.PartFolder:  "free some space there, or name another state_dir in a configuration: one that root can write to, and that no other harness works in now",
	suites.PartSandbox: "runsc's own reason stands above: check runtime.platform (kvm needs /dev/kvm), runtime.flags and that this runsc knows them",
	suites.PartCgroups: "let the harness write below the cgroup root: not in a container with a read-only cgroup file system",
	suites.PartSwap:    "turn swap off (swapoff -a), or boot with swapaccount=1",
	suites.PartHelpers: "a /proc that is mounted, for /proc/self/exe, and a cgroup in which processes can be started",
	suites.PartTmpfs:   "run where mount(2) is allowed: as real root with CAP_SYS_ADMIN",
	suites.PartNetwork: "load the kernel modules veth and nf_tables, and allow network namespaces",
	suites.PartImage:   "a kernel with overlayfs (modprobe overlay); with image: set, a base image that can be read",
}

const controllers = "a writable memory, pids and cpuacct controller; see cgroups"

// remedies say, by observer, what to do when its control is not met.
var remedies = map[string]string{
	"space":      "real file systems that root can write to",
	"mounts":     "a /proc that shows other processes (not hidepid, not a container's)",
	"namespaces": "a kernel with PID, mount, network, IPC and UTS namespaces, and CAP_SYS_ADMIN",
	"trees":      "a state_dir that can be written to",
	"secrets":    "a state_dir that can be written to",
	"tasks":      controllers,
	"processor":  controllers,
	"memory":     controllers,
	"limits":     controllers,
	"boot":       controllers,
	"processes":  controllers,
	"bystander":  controllers,
	"oom":        "a readable kernel log (/dev/kmsg, CAP_SYSLOG) of this machine, not a container's",
	"canary":     "a kernel with fanotify (CONFIG_FANOTIFY) and CAP_SYS_ADMIN",
	"egress":     "a kernel with nf_tables (modprobe nf_tables)",
	"link":       "a kernel with veth (modprobe veth)",
	"routes":     "a readable /proc/PID/net/route",
	"residue":    "all of the above",
}

// left is what the doctor could not remove, as an error.
func left(found []finding) (err error) {
	for _, f := range found {
		if f.Name == cleanUp && !f.OK {
			err = errors.Join(err, fmt.Errorf("%s: %s: %s", f.Name, f.Seen, f.Remedy))
		}
	}
	return err
}
