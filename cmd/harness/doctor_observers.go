package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"

	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
)

// eye is one observer, made when its turn comes. Its control is all that the
// doctor wants of it.
type eye struct {
	name   string
	remedy string
	open   func() (controlled, error)
}

// controlled is the half of an observer that shows that it sees.
type controlled interface {
	Control(ctx context.Context) observers.Control
}

// cleanUp names the finding that something of the doctor's own is left.
const cleanUp = "clean-up"

// examineObservers makes the ground, lets each observer's control run on it, all
// at once as in a run, and removes the ground.
func examineObservers(ctx context.Context, cfg runsc.Config, h *cgroup.Hierarchy) (out []finding) {
	g, out := level(ctx, cfg, h)
	defer func() {
		if err := g.clear(); err != nil {
			out = append(out, finding{Name: cleanUp, Seen: err.Error(), Remedy: "remove by hand what is named"})
		}
	}()
	eyes := g.eyes()
	seen := make([]finding, len(eyes))
	var wg sync.WaitGroup
	for i, e := range eyes {
		wg.Go(func() { seen[i] = e.look(ctx) })
	}
	wg.Wait()
	return append(out, seen...)
}

func (e eye) look(ctx context.Context) finding {
	f := finding{Name: "observer " + e.name, Remedy: e.remedy}
	o, err := e.open()
	if err != nil {
		f.Seen = "cannot be made: " + err.Error()
		return f
	}
	c := o.Control(ctx)
	switch closer := o.(type) { // it has seen what it had to see
	case interface{ Close() error }:
		err = closer.Close()
	case interface{ Close() }:
		closer.Close()
	}
	switch {
	case err != nil:
		f.Seen = "cannot be closed: " + err.Error()
	case !c.Passed:
		f.Seen = fmt.Sprintf("%s: wanted %s, saw %s: %s", c.Effect, c.Want, c.Seen, c.Reason)
	default:
		f.OK, f.Seen, f.Remedy = true, "saw "+c.Seen, ""
	}
	return f
}

// eyes are the observers with their real constructors. Listing, output, census
// and clock have a running sandbox as their control and are left to a run.
func (g *ground) eyes() []eye {
	h := observers.Local()
	spawn := act.Spawner{Host: h, Default: g.prefix + "/helpers"}
	need := func(there bool, what string, open func() (controlled, error)) func() (controlled, error) {
		if there {
			return open
		}
		return func() (controlled, error) { return nil, fmt.Errorf("needs %s, see above", what) }
	}
	always := func(o controlled) func() (controlled, error) {
		return func() (controlled, error) { return o, nil }
	}
	grouped := func(o controlled) func() (controlled, error) { return need(g.group != nil, "cgroups", always(o)) }
	const cgroups = "a writable memory, pids and cpuacct controller; see cgroups"
	out := []eye{
		{"space", "real file systems that root can write to", always(observers.NewSpace(h, nil))},
		{"mounts", "a /proc that shows other processes (not hidepid, not a container's)", always(observers.NewMounts(h))},
		{"namespaces", "a kernel with PID, mount, network, IPC and UTS namespaces, and CAP_SYS_ADMIN", always(observers.NewNamespaces(h))},
		{"trees", "a temporary folder that can be written to", always(&observers.Trees{})},
		{"secrets", "none is known", func() (controlled, error) { return observers.NewSecrets([]string{"tenwalls-doctor-no-secret"}) }},
		{"tasks", cgroups, grouped(observers.NewTasks(h, g.prefix, spawn))},
		{"processor", cgroups, grouped(observers.NewProcessor(h, g.prefix, spawn))},
		{"memory", cgroups, grouped(observers.NewMemory(h, g.prefix, spawn))},
		{"processes", cgroups, grouped(observers.NewProcesses(h, g.prefix, spawn))},
		{"bystander", cgroups, grouped(observers.NewBystander(h, spawn))},
		{"oom", "a readable kernel log (/dev/kmsg, CAP_SYSLOG) of this machine, not a container's; after ten kills within 5 s the kernel writes no record: look again", grouped(observers.NewOOM(h, g.prefix, spawn))},
		{"canary", "a kernel with fanotify (CONFIG_FANOTIFY) and CAP_SYS_ADMIN", need(g.image != nil, "the image", func() (controlled, error) {
			return observers.NewCanary(h, g.image.CanaryFiles())
		})},
	}
	return append(out, g.wired(h, spawn, need)...)
}

// wired are the observers of the network.
func (g *ground) wired(h observers.Host, spawn observers.Spawner, need func(bool, string, func() (controlled, error)) func() (controlled, error)) []eye {
	there := g.world != nil
	var w *observers.Wire
	if there {
		w = &observers.Wire{Name: "doctor", Place: g.world.PlacePath(), Link: g.world.PlaceLink(), World: g.world.WorldPath(), Peer: g.world.WorldLink()}
	}
	return []eye{
		{"egress", "a kernel with nf_tables (modprobe nf_tables)", need(there, "the network", func() (controlled, error) { return g.egress(w) })},
		{"link", "a kernel with veth (modprobe veth)", need(there, "the network", func() (controlled, error) {
			v4, _ := g.world.Destination("link")
			return observers.NewLink(w, v4)
		})},
		{"routes", "a readable /proc/PID/net/route", need(there, "the network", func() (controlled, error) {
			return observers.NewRoutes(h, g.world.InPlace), nil
		})},
		{"residue", "all of the above", need(there && g.group != nil, "network and cgroups", func() (controlled, error) {
			return observers.NewResidue(h, observers.Grounds{
				State: []string{filepath.Join(g.dir, "state")}, Places: []string{g.world.PlacePath(), g.world.WorldPath()},
				Cgroup: g.prefix, Scratch: g.dir, Spawn: spawn,
			}), nil
		})},
	}
}

func (g *ground) egress(w *observers.Wire) (controlled, error) {
	o, err := observers.NewEgress(w)
	if err != nil {
		return nil, err
	}
	v4, v6 := g.world.Destination("egress")
	if err := o.For("doctor", []netip.Addr{v4, v6}); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}
