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
	// suspectAfter is how long a look may take before what is published is taken
	// back unseen: a changed file that is being hashed, or a disk that hangs.
	suspectAfter = 500 * time.Millisecond
	// backBy is how far the clock may go back between two looks: leap seconds,
	// and the steps of a time service that are smaller than its slewing.
	backBy = 2 * time.Second
	// quietAtMost bounds, in debounces, how long a run waits for quiet.
	quietAtMost = 10
	// lookEvery bounds how often events are answered with a look: a file that
	// somebody writes all the time costs no more than that.
	lookEvery = 50 * time.Millisecond
	// postponeStep is how often a busy machine is looked at again.
	postponeStep = time.Minute
)

// changed answers an event. While something is published it is looked at at
// once, or as soon as lookEvery allows; else once it is quiet, since there is
// nothing to take back.
func (d *Daemon) changed() {
	debounce := time.Duration(d.cfg.Debounce)
	if !d.until.IsZero() {
		if rest := d.answered + lookEvery - d.opt.Clock.Mono(); rest > 0 {
			d.lookAt.set(rest)
			return
		}
		d.answer()
		return
	}
	if d.due != nil && d.due.cause == CauseChange {
		d.ask(d.due.request, debounce) // it is not quiet yet
	}
	if d.lookAt.t == nil {
		d.lookAt.set(debounce)
	}
}

// answer is a look because of an event.
func (d *Daemon) answer() {
	d.lookAt.stop()
	d.answered = d.opt.Clock.Mono()
	d.inspect()
}

// inspect looks at everything that can end a qualification.
func (d *Daemon) inspect() {
	d.clock()
	d.reload()
	d.look()
	if d.good != nil && (!d.wall.Before(d.good.wall) || d.mono >= d.good.mono) {
		d.lose("the qualification has expired, and no run has renewed it")
		d.notify(hostile.Unproven, d.why, Result{}, string(id.New("notice")))
		d.ask(request{CauseExpiry, d.why}, 0)
	}
	if !d.next.IsZero() && !d.wall.Before(d.next) { // the clock was set ahead of the timer
		d.scheduled()
	}
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
	d.lose(why)
	d.reschedule()
	d.ask(request{CauseClock, why}, 0)
}

// reload takes the daemon's own configuration anew. An invalid one ends the
// qualification: nothing is kept on an older one silently.
func (d *Daemon) reload() {
	next, err := d.opt.Reload()
	if err == nil {
		if field := d.cfg.settled(next); field != "" {
			err = fmt.Errorf("%s was changed in %s: restart the daemon, or change it back", field, next.File())
		}
	}
	if err != nil {
		d.fail(&d.faults.config, "configuration: "+err.Error())
		return
	}
	if !reflect.DeepEqual(next, d.cfg) {
		d.cfg = next
		d.log.Info("the configuration has changed", "file", next.File())
		d.reschedule()
		d.tickAt.set(time.Duration(next.Tick))
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

// look reads the identity, and takes back what is published when it is another
// one or cannot be told.
func (d *Daemon) look() {
	watch := func() {
		if d.opt.Files == nil {
			return
		}
		all := d.watched
		all.Paths = append([]string{d.cfg.File(), d.cfg.StateDir}, all.Paths...)
		unseen := ""
		if err := d.opt.Files.Watch(all); err != nil {
			unseen = err.Error()
		}
		if unseen != "" && unseen != d.unseen {
			d.log.Warn("some changes are seen at the next tick only", "why", unseen)
		}
		d.unseen = unseen
	}
	watch() // before reading: what changes in between is an event
	i, watched, err := d.read()
	if !reflect.DeepEqual(watched, d.watched) {
		d.watched = watched
		watch()
		i, _, err = d.read()
	}
	if err != nil {
		d.known = false
		d.opt.Meter.Identified(Identity{})
		d.fail(&d.faults.identity, "what would be qualified cannot be told: "+err.Error())
		return
	}
	was, known := d.identity, d.known
	d.identity, d.known = i, true
	d.mend(&d.faults.identity)
	if !known {
		d.opt.Meter.Identified(i)
		return
	}
	changes := i.Changes(was)
	if len(changes) == 0 {
		return
	}
	why := "identity changed: " + told(changes)
	d.lose(why)
	d.opt.Meter.Identified(i)
	d.ask(request{CauseChange, why}, time.Duration(d.cfg.Debounce))
}

// read is one bounded look.
func (d *Daemon) read() (Identity, Watched, error) {
	type seen struct {
		i   Identity
		w   Watched
		err error
	}
	got := make(chan seen, 1)
	runner := d.cfg.Runner
	go func() {
		i, w, err := d.opt.Reader.Read(runner)
		got <- seen{i, w, err}
	}()
	suspect := time.NewTimer(suspectAfter)
	defer suspect.Stop()
	var s seen
	select {
	case s = <-got:
	case <-suspect.C:
		if !d.until.IsZero() {
			d.withdraw("it takes long to tell whether the identity has changed")
			d.renewAt.set(0) // when it has not
		}
		s = <-got
	}
	return s.i, s.w, s.err
}

// faults are why nothing can be qualified at all; both are empty when it can.
type faults struct{ config, identity string }

func (f faults) String() string {
	if f.config != "" {
		return f.config
	}
	return f.identity
}

// fail says that nothing can be qualified, and why.
func (d *Daemon) fail(fault *string, why string) {
	if *fault == why {
		return
	}
	*fault = why
	d.lose(d.faults.String())
	d.notify(hostile.Unproven, d.why, Result{}, string(id.New("notice")))
}

// mend takes a fault away. When it was the last, a run is due.
func (d *Daemon) mend(fault *string) {
	was := *fault
	*fault = ""
	if was == "" || d.faults.String() != "" {
		return
	}
	d.log.Info("in order again", "was", was)
	d.ask(request{CauseChange, "in order again, after: " + brief(was)}, time.Duration(d.cfg.Debounce))
}

// lose ends the qualification.
func (d *Daemon) lose(why string) {
	d.good = nil
	d.withdraw(why)
}

// withdraw takes back what is published.
func (d *Daemon) withdraw(why string) {
	d.renewAt.stop()
	was := d.until
	d.until, d.why = time.Time{}, why
	d.stuck = false
	if err := d.opt.Publisher.Withdraw(); err != nil {
		d.stuck = true
		d.log.Error("the published file is not known to be gone; it is not renewed", "why", err.Error())
	}
	d.opt.Meter.Published(time.Time{})
	if !was.IsZero() {
		d.log.Warn("withdrawn", "why", why)
	}
	d.show() // not only after the event: a look can take long
}

// unstick withdraws again, at a tick, what could not be removed.
func (d *Daemon) unstick() {
	if d.stuck && d.good == nil { // else the next renewal replaces it
		d.withdraw(d.why)
	}
}

// renew publishes the qualification for another life.
func (d *Daemon) renew() {
	if d.good == nil {
		return
	}
	life := time.Duration(d.cfg.PublishLife)
	// The nearer end of the two clocks, told on the wall clock.
	until := d.wall.Add(min(life, d.good.mono-d.mono))
	first := d.until.IsZero()
	end, err := d.opt.Publisher.Publish(*d.good.result.Statement, d.wall, until)
	if err != nil {
		d.withdraw("it could not be published: " + err.Error())
		d.renewAt.set(life / 3)
		return
	}
	d.until, d.why, d.stuck = end, "", false
	d.renewAt.set(life / 3)
	d.opt.Meter.Published(end)
	if first {
		d.log.Info("published", "run", d.good.ran.Run, "file", d.opt.Publisher.Path, "until", end.Format(time.RFC3339), "qualified_until", d.good.wall.Format(time.RFC3339))
	}
}

// ask makes a run due once it has been quiet for so long. There is one further
// run, whoever asks for it and how often.
func (d *Daemon) ask(r request, quiet time.Duration) {
	now := d.opt.Clock.Mono()
	if d.due == nil {
		d.due = &due{request: r, since: now}
		d.runAt.set(quiet)
		return
	}
	if r != d.due.request {
		d.due.more++
	}
	if quiet > 0 && !d.due.ready {
		d.runAt.set(min(quiet, d.due.since+quietAtMost*time.Duration(d.cfg.Debounce)-now))
	}
}

// begin starts the run that is due.
func (d *Daemon) begin(ctx context.Context) {
	if d.due == nil {
		return
	}
	if d.running != nil {
		d.due.ready = true
		return
	}
	d.inspect()
	if why := d.faults.String(); why != "" {
		d.log.Warn("no run: nothing can be qualified", "asked", d.due.reason, "why", why)
		d.due = nil
		d.runAt.stop()
		return
	}
	reason := d.due.reason
	if d.due.more > 0 {
		reason += fmt.Sprintf(" (and %d others)", d.due.more)
	}
	r := Request{
		ID: string(id.New("watch")), Reason: reason, Cause: d.due.cause, Began: d.opt.Clock.Wall().UTC(), Runner: d.cfg.Runner,
		ValidFor: time.Duration(d.cfg.ValidFor), Within: time.Duration(d.cfg.RunWithin), Share: d.cfg.Share, Identity: d.identity,
	}
	d.due = nil
	d.runAt.stop()
	d.retryAt.stop()
	d.retry = time.Time{}
	d.postpone = time.Time{}
	d.running = &r
	d.log.Info("run", "run", r.ID, "cause", r.Cause, "reason", r.Reason)
	var child context.Context
	child, d.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := d.opt.Ledger.Begin(r); err != nil {
		d.done <- Result{Outcome: hostile.Unproven, Trouble: brief("the run could not be recorded: " + err.Error()), Ended: d.opt.Clock.Wall()}
		return
	}
	go func() { d.done <- d.opt.Suite.Run(child, r) }()
}
