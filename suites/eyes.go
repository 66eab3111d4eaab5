package suites

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
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
	within   time.Duration // the controls, all at once

	mu sync.Mutex
}

// openEyes makes every observer that the wanted trials name. An observer that
// cannot be made is blind, and says why in its control: that is no error.
func openEyes(s *Scene, wanted map[string]bool) (*eyes, error) {
	h := observers.Local()
	h.Temp = s.dir // what a crash leaves there goes with the run
	e := &eyes{host: h, all: map[string]observers.Observer{}, controls: map[string][]observers.Control{}, counts: newCounts(), within: s.within(controlWithin)}
	prefix := s.cfg.CgroupParent
	spawn := act.Spawner{Host: h, Default: s.helpers()}
	secrets := []string{s.neighbour.Secret}
	if s.image != nil {
		for _, c := range s.image.Canaries {
			secrets = append(secrets, c.Value)
		}
	}
	var err error
	if e.secrets, err = observers.NewSecrets(h, secrets); err != nil {
		return nil, err
	}
	makers := map[string]func() (observers.Observer, error){
		"canary":     func() (observers.Observer, error) { return e.canary(s) },
		"secrets":    func() (observers.Observer, error) { return e.secrets, nil },
		"egress":     func() (observers.Observer, error) { return e.egress(s) },
		"link":       func() (observers.Observer, error) { return e.link(s) },
		"space":      func() (observers.Observer, error) { return observers.NewSpace(h, nil), nil },
		"tasks":      func() (observers.Observer, error) { return observers.NewTasks(h, prefix, spawn), nil },
		"processor":  func() (observers.Observer, error) { return observers.NewProcessor(h, prefix, spawn), nil },
		"memory":     func() (observers.Observer, error) { return observers.NewMemory(h, prefix, spawn), nil },
		"oom":        func() (observers.Observer, error) { return e.oom(s, spawn) },
		"bystander":  func() (observers.Observer, error) { return observers.NewBystander(h, spawn), nil },
		"mounts":     func() (observers.Observer, error) { return observers.NewMounts(h), nil },
		"namespaces": func() (observers.Observer, error) { return observers.NewNamespaces(h), nil },
		"routes":     func() (observers.Observer, error) { return e.routes(s) },
		"processes":  func() (observers.Observer, error) { return observers.NewProcesses(h, prefix, spawn), nil },
		"residue":    func() (observers.Observer, error) { return e.residue(s, spawn) },
		"listing":    func() (observers.Observer, error) { return newListing(s), nil },
		"output":     func() (observers.Observer, error) { return outputObserver{e.counts}, nil },
		"census":     func() (observers.Observer, error) { return newCensus(s.allowList()), nil },
		"clock":      func() (observers.Observer, error) { return clockObserver{}, nil },
	}
	for name := range wanted {
		if name == "trees" {
			e.trees = &observers.Trees{Temp: h.Temp}
			continue
		}
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

// A run's scene has all its parts. Where [Examine] could not make one, the
// observers that look at it cannot be made either, and say so.
var (
	errNoNetwork = errors.New("it looks at the network, which could not be made")
	errNoImage   = errors.New("it looks at the image, which could not be made")
)

func (e *eyes) canary(s *Scene) (observers.Observer, error) {
	if s.image == nil {
		return nil, errNoImage
	}
	o, err := observers.NewCanary(e.host, s.image.CanaryFiles())
	if err != nil {
		return nil, err
	}
	e.closers = append(e.closers, o.Close)
	return o, nil
}

// wire is the place's link with its other end.
func (s *Scene) wire() (*observers.Wire, error) {
	if s.world == nil {
		return nil, errNoNetwork
	}
	return &observers.Wire{Name: "place", Place: s.world.PlacePath(), Link: s.world.PlaceLink(), World: s.world.WorldPath(), Peer: s.world.WorldLink()}, nil
}

func (e *eyes) routes(s *Scene) (observers.Observer, error) {
	if s.world == nil {
		return nil, errNoNetwork
	}
	return observers.NewRoutes(e.host, s.world.InPlace), nil
}

func (e *eyes) residue(s *Scene, spawn observers.Spawner) (observers.Observer, error) {
	if s.world == nil {
		return nil, errNoNetwork
	}
	return observers.NewResidue(e.host, observers.Grounds{
		State: []string{filepath.Join(s.cfg.StateDir, "jobs")}, Places: []string{s.world.PlacePath(), s.world.WorldPath()},
		Cgroup: s.cfg.CgroupParent, Scratch: s.dir, Spawn: spawn,
	}), nil
}

// oom tells the observer how many kills the whole set of trials causes. An
// examination causes none beyond the control.
func (e *eyes) oom(s *Scene, spawn observers.Spawner) (observers.Observer, error) {
	o := observers.NewOOM(e.host, s.cfg.CgroupParent, spawn)
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
	w, err := s.wire()
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
	w, err := s.wire()
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
	if e.trees != nil {
		run("trees", e.trees.Control)
	}
	wg.Wait()
}

func (e *eyes) add(name string, c observers.Control) {
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
