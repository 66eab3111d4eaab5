package suites

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
)

// eyes are the observers of one run, with their controls.
type eyes struct {
	host     observers.Host
	all      map[string]observers.Observer
	trees    *observers.Trees
	secrets  *observers.Secrets
	counts   *counts
	controls map[string][]observers.Control // by observer
	closers  []func() error
	inForce  readback
	theWire  *observers.Wire
	mutant   *Mutant       // nil: none
	within   time.Duration // the controls, all at once

	mu sync.Mutex
}

// openEyes makes every observer that the wanted trials name. An observer that
// cannot be made is blind, and says why in its control: that is no error.
func openEyes(s *Scene, wanted map[string]bool) (*eyes, error) {
	h := observers.Local()
	h.Temp = s.dir // what a crash leaves there goes with the run
	// A blinded observer looks where nothing is.
	at := func(name string) observers.Host {
		if s.mutant.blinds(name) {
			return observers.Host{Proc: s.void(), Sys: s.void(), Cgroup: s.void(), Kmsg: os.DevNull, Temp: h.Temp}
		}
		return h
	}
	e := &eyes{
		host: h, all: map[string]observers.Observer{}, controls: map[string][]observers.Control{}, counts: newCounts(),
		mutant: s.mutant, within: s.within(controlWithin),
	}
	prefix := s.cfg.CgroupParent
	spawn := act.Spawner{Host: h, Default: s.helpers()}
	var err error
	if e.secrets, err = s.watchSecrets(h); err != nil {
		return nil, err
	}
	makers := map[string]func() (observers.Observer, error){
		"canary":     func() (observers.Observer, error) { return e.canary(s, at("canary")) },
		"secrets":    func() (observers.Observer, error) { return e.secrets, nil },
		"egress":     func() (observers.Observer, error) { return e.egress(s) },
		"link":       func() (observers.Observer, error) { return e.link(s) },
		"space":      func() (observers.Observer, error) { return observers.NewSpace(at("space"), nil), nil },
		"tasks":      func() (observers.Observer, error) { return observers.NewTasks(at("tasks"), prefix, spawn), nil },
		"processor":  func() (observers.Observer, error) { return observers.NewProcessor(at("processor"), prefix, spawn), nil },
		"limits":     func() (observers.Observer, error) { return observers.NewLimits(at("limits"), prefix), nil },
		"boot":       func() (observers.Observer, error) { return observers.NewBoot(at("boot"), prefix, spawn), nil },
		"memory":     func() (observers.Observer, error) { return observers.NewMemory(at("memory"), prefix, spawn), nil },
		"oom":        func() (observers.Observer, error) { return e.oom(s, at("oom"), spawn) },
		"bystander":  func() (observers.Observer, error) { return observers.NewBystander(at("bystander"), spawn), nil },
		"mounts":     func() (observers.Observer, error) { return observers.NewMounts(at("mounts")), nil },
		"namespaces": func() (observers.Observer, error) { return e.namespaces(s, at("namespaces")) },
		"routes":     func() (observers.Observer, error) { return e.routes(s, at("routes")) },
		"processes":  func() (observers.Observer, error) { return observers.NewProcesses(at("processes"), prefix, spawn), nil },
		"residue":    func() (observers.Observer, error) { return e.residue(s, at("residue"), spawn) },
		"listing":    func() (observers.Observer, error) { return newListing(s), nil },
		"output":     func() (observers.Observer, error) { return outputObserver{e.counts}, nil },
		"census":     func() (observers.Observer, error) { return newCensus(s.filter()), nil },
		"trees":      func() (observers.Observer, error) { return e.watchTrees(s, h), nil },
		"clock":      func() (observers.Observer, error) { return clockObserver{}, nil },
	}
	for name := range wanted {
		make := makers[name]
		if make == nil {
			return nil, errors.Join(fmt.Errorf("no observer is named %q", name), e.close())
		}
		o, err := make()
		if err != nil {
			e.controls[name] = append(e.controls[name], observers.Control{Observer: name, Effect: "the observer is made", Want: "eyes", Seen: "none", Reason: err.Error()})
			continue
		}
		e.all[name] = o
	}
	return e, nil
}

// watchSecrets is told what the run's secrets are, and for its control shown
// what stands in the canaries: the one from the harness's memory, the other from
// the disk.
func (s *Scene) watchSecrets(h observers.Host) (*observers.Secrets, error) {
	secrets := []string{s.neighbour.Secret}
	var shown [][]byte
	if s.image != nil {
		for _, c := range s.image.Canaries {
			secrets = append(secrets, c.Value)
		}
		for _, file := range s.image.CanaryFiles() {
			data, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue // the watch on the canaries cannot be made then, and says so
			}
			if err != nil {
				return nil, fmt.Errorf("read canary: %w", err)
			}
			shown = append(shown, data)
		}
	}
	if s.mutant.blinds("secrets") {
		secrets = []string{fixtures.NewSecret()}
	}
	return observers.NewSecrets(h, secrets, shown...)
}

// void is a folder in which nothing is.
func (s *Scene) void() string { return filepath.Join(s.dir, "void") }

// A run's scene has all its parts. Where [Examine] could not make one, the
// observers that look at it cannot be made either, and say so.
var (
	errNoNetwork = errors.New("it looks at the network, which could not be made")
	errNoImage   = errors.New("it looks at the image, which could not be made")
)

func (e *eyes) namespaces(s *Scene, h observers.Host) (observers.Observer, error) {
	if s.world == nil {
		return observers.NewNamespaces(h), nil
	}
	return observers.NewNamespaces(h, s.world.PlacePath(), s.world.WorldPath()), nil
}

func (e *eyes) canary(s *Scene, h observers.Host) (observers.Observer, error) {
	if s.image == nil {
		return nil, errNoImage
	}
	o, err := observers.NewCanary(h, s.image.CanaryFiles())
	if err != nil {
		return nil, err
	}
	e.closers = append(e.closers, o.Close)
	return o, nil
}

// watchTrees makes the observer that the run asks itself, once before and once
// after its jobs.
func (e *eyes) watchTrees(s *Scene, h observers.Host) observers.Observer {
	e.trees = &observers.Trees{Temp: h.Temp}
	if s.image != nil && s.runner != nil { // an examination has no job to compare around
		e.trees.Holds = []string{filepath.Join(s.image.Root, guestPath)}
	}
	return e.trees
}

// wire is the place's link with its other end: one for the run, because the
// controls of those that count at it take turns by it.
func (e *eyes) wire(s *Scene) (*observers.Wire, error) {
	if s.world == nil {
		return nil, errNoNetwork
	}
	if e.theWire == nil {
		e.theWire = &observers.Wire{Name: "place", Place: s.world.PlacePath(), Link: s.world.PlaceLink(), World: s.world.WorldPath(), Peer: s.world.WorldLink()}
	}
	return e.theWire, nil
}

func (e *eyes) routes(s *Scene, h observers.Host) (observers.Observer, error) {
	if s.world == nil {
		return nil, errNoNetwork
	}
	return observers.NewRoutes(h, s.world.InPlace), nil
}

func (e *eyes) residue(s *Scene, h observers.Host, spawn observers.Spawner) (observers.Observer, error) {
	if s.world == nil {
		return nil, errNoNetwork
	}
	return observers.NewResidue(h, observers.Grounds{
		State: []string{filepath.Join(s.cfg.StateDir, "jobs")}, Places: []string{s.world.PlacePath(), s.world.WorldPath()},
		Cgroup: s.cfg.CgroupParent, Scratch: s.dir, Spawn: spawn,
	}), nil
}

// oom tells the observer how many kills the whole set of trials causes. An
// examination causes none beyond the control.
func (e *eyes) oom(s *Scene, h observers.Host, spawn observers.Spawner) (observers.Observer, error) {
	o := observers.NewOOM(h, s.cfg.CgroupParent, spawn)
	if s.runner != nil {
		o.Expect(kills())
	}
	return o, nil
}

// kills counts the trials that want an OOM kill: each ends its own cell's job.
func kills() (n int) {
	for _, t := range Trials() {
		if slices.ContainsFunc(t.Wants, func(w reports.Want) bool { return w.Observer == "oom" }) {
			n++
		}
	}
	return n
}

func (e *eyes) egress(s *Scene) (observers.Observer, error) {
	w, err := e.wire(s)
	if err != nil {
		return nil, err
	}
	o, err := observers.NewEgress(w)
	if err != nil {
		return nil, err
	}
	e.closers = append(e.closers, o.Close)
	for cell, dests := range s.destinations() {
		if err := o.For(cell, dests); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (e *eyes) link(s *Scene) (observers.Observer, error) {
	w, err := e.wire(s)
	if err != nil {
		return nil, err
	}
	v4, _ := s.Destination("control")
	o, err := observers.NewLink(w, v4)
	if err != nil {
		return nil, err
	}
	e.closers = append(e.closers, func() error { o.Close(); return nil })
	return o, nil
}

// destinations are the addresses whose counters belong to a cell.
func (s *Scene) destinations() map[string][]netip.Addr {
	c4, c6 := s.Destination("connection")
	m4, m6 := s.Destination("metadata")
	return map[string][]netip.Addr{
		"connection": {c4, c6},
		"metadata":   append([]netip.Addr{m4, m6}, fixtures.MetadataAddresses()...),
	}
}

// drop makes the far end drop, after counting, what is sent to the canary
// destinations from now on: a wall that is down lets a packet out and nothing
// in. The controls came before, and were answered.
func (e *eyes) drop(s *Scene) error {
	o, ok := e.all["egress"].(*observers.Egress)
	if !ok {
		return nil // it is not asked, or blind, and says so
	}
	var all []netip.Addr
	for _, dests := range s.destinations() {
		all = append(all, dests...)
	}
	return o.Drop(all)
}

// control runs every observer's control at once, before the first attempt. The
// observers whose control needs a running sandbox are controlled there.
func (e *eyes) control(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	var wg sync.WaitGroup
	run := func(name string, control func(context.Context) observers.Control) {
		wg.Go(func() { e.add(name, control(ctx)) })
	}
	for name, o := range e.all {
		if name != "listing" {
			run(name, o.Control)
		}
	}
	wg.Wait()
}

func (e *eyes) add(name string, c observers.Control) {
	if e.mutant != nil && e.mutant.Control != nil {
		var ok bool
		if c, ok = e.mutant.Control(name, c); !ok {
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.controls[name] = append(e.controls[name], c)
}

// of returns the controls of one observer.
func (e *eyes) of(name string) []observers.Control {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]observers.Control{}, e.controls[name]...)
}

func (e *eyes) close() error {
	var errs []error
	for _, c := range e.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
