package watch

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/sandbox/id"
)

const (
	// suspectAfter is how long the look after an event may take before what is
	// published is taken back unseen: a changed file that is being hashed, or a
	// disk that hangs.
	suspectAfter = 500 * time.Millisecond
	// patientFor is the same for a look without any event: a large base image is
	// walked. An event on the way ends the patience.
	patientFor = 5 * time.Second
)

// view is what one look saw, before anything is made of it.
type view struct {
	dead     error // the daemon cannot go on
	cfg      Config
	cfgErr   error
	identity Identity
	watched  Watched
	err      error  // the identity cannot be told
	unseen   string // why some changes are seen at ticks only
}

// see does everything of a look that reads files, and so everything that can
// hang. It changes nothing of the daemon.
func (d *Daemon) see(cfg Config, known Watched) (v view) {
	v.dead = d.opt.Alive()
	v.cfg, v.cfgErr = d.reload(cfg)
	watch := func() (touched bool) {
		if d.opt.Files == nil {
			return false
		}
		all := known
		all.Paths = append([]string{cfg.File(), cfg.StateDir}, all.Paths...)
		v.unseen = ""
		touched, err := d.opt.Files.Watch(all)
		if err != nil {
			v.unseen = err.Error()
		}
		return touched
	}
	touched := watch() // before reading: what changes in between is an event
	v.identity, v.watched, v.err = d.opt.Reader.Read(v.cfg.Runner, touched)
	if !reflect.DeepEqual(v.watched, known) {
		known = v.watched
		touched = watch() || touched
		v.identity, _, v.err = d.opt.Reader.Read(v.cfg.Runner, touched)
	}
	return v
}

// reload reads the daemon's own configuration anew. On an error the one that was
// given is returned beside it.
func (d *Daemon) reload(now Config) (Config, error) {
	next, err := d.opt.Reload()
	if err != nil {
		return now, err
	}
	if field := now.settled(next); field != "" {
		return now, fmt.Errorf("%s was changed in %s: restart the daemon, or change it back", field, next.File())
	}
	return next, nil
}

// bounded is one look. Nobody waits for it longer than patience with something
// published, nor at all once the daemon was told to end: then ok is false.
func (d *Daemon) bounded(ctx context.Context, patience time.Duration) (v view, ok bool) {
	got := make(chan view, 1)
	cfg, known := d.cfg, d.watched
	go func() { got <- d.see(cfg, known) }()
	suspect := time.NewTimer(patience)
	defer suspect.Stop()
	for {
		select {
		case v = <-got:
			return v, true
		case <-ctx.Done():
			return view{}, false
		case <-d.changes:
			// This look may have been past it.
			d.lookAt.set(lookEvery)
			if patience > suspectAfter {
				patience = suspectAfter
				suspect.Reset(patience)
			}
		case <-suspect.C:
			if !d.until.IsZero() {
				d.withdraw("it takes long to tell whether the identity has changed")
				d.renewAt.set(0) // when it has not
			}
		}
	}
}

// inspect looks at everything that can end a qualification. It returns false when
// the daemon is to end.
func (d *Daemon) inspect(ctx context.Context, patience time.Duration) bool {
	v, ok := d.bounded(ctx, patience)
	if !ok {
		return false
	}
	if v.dead != nil {
		d.dead = v.dead
		return false
	}
	d.clock() // after the look, which can have taken long
	d.configured(v)
	d.identified(v)
	if d.good != nil && (!d.wall.Before(d.good.wall) || d.mono >= d.good.mono) {
		d.lose("the qualification has expired, and no run has renewed it")
		d.notify(hostile.Unproven, d.why, Result{}, string(id.New("notice")))
		d.ask(request{CauseExpiry, d.why}, 0)
	}
	if !d.next.IsZero() && !d.wall.Before(d.next) { // the clock was set ahead of the timer
		d.scheduled()
	}
	return true
}

// clock compares the two clocks. On a wall clock that went back, no expiry means
// what it meant.
func (d *Daemon) clock() {
	wall, mono := d.opt.Clock.Wall(), d.opt.Clock.Mono()
	back := (mono - d.mono) - wall.Sub(d.wall)
	d.wall, d.mono = wall, mono
	if back <= backBy {
		return
	}
	why := fmt.Sprintf("the clock went back by %s", back.Round(time.Second))
	d.spoil(why)
	d.lose(why)
	d.reschedule()
	d.ask(request{CauseClock, why}, 0)
}

// configured takes the daemon's own configuration anew. An invalid one ends the
// qualification: nothing is kept on an older one silently.
func (d *Daemon) configured(v view) {
	if v.cfgErr != nil {
		d.fail(&d.faults.config, "configuration: "+v.cfgErr.Error())
		return
	}
	if !reflect.DeepEqual(v.cfg, d.cfg) {
		d.cfg = v.cfg
		d.log.Info("the configuration has changed", "file", d.cfg.File())
		d.reschedule()
		d.tickAt.set(time.Duration(d.cfg.Tick))
		d.shorten()
	}
	d.mend(&d.faults.config)
}

// shorten takes up new spans of time: what is qualified lasts no longer than it
// would have under them, and what is published is published anew.
func (d *Daemon) shorten() {
	if d.good == nil {
		return
	}
	if early := d.good.wall.Sub(d.good.ran.Ended.Add(time.Duration(d.cfg.ValidFor))); early > 0 {
		d.good.wall, d.good.mono = d.good.wall.Add(-early), d.good.mono-early
	}
	d.renewAt.set(0)
}

// identified takes back what is published when the identity is another one or
// cannot be told.
func (d *Daemon) identified(v view) {
	d.watched = v.watched
	if v.unseen != "" && v.unseen != d.unseen {
		d.log.Warn("some changes are seen at the next tick only", "why", v.unseen)
	}
	d.unseen = v.unseen
	if v.err != nil {
		d.known = false
		d.opt.Meter.Identified(Identity{})
		d.fail(&d.faults.identity, "what would be qualified cannot be told: "+v.err.Error())
		return
	}
	was, known := d.identity, d.known
	d.identity, d.known = v.identity, true
	d.mend(&d.faults.identity)
	if !known {
		d.opt.Meter.Identified(d.identity)
		return
	}
	changes := d.identity.Changes(was)
	if len(changes) == 0 {
		return
	}
	why := "identity changed: " + told(changes)
	d.spoil(told(changes))
	d.lose(why)
	d.opt.Meter.Identified(d.identity)
	d.ask(request{CauseChange, why}, time.Duration(d.cfg.Debounce))
}

// spoil says why the run that goes on qualifies nothing any more, though all be
// as before when it ends: it may have tried the walls in between.
func (d *Daemon) spoil(why string) {
	if d.running != nil && d.spoiled == "" {
		d.spoiled = "while it ran, " + why
	}
}
