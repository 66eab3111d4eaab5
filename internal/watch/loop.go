package watch

import (
	"context"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/sandbox/id"
)

const (
	// backBy is how far the clock may go back between two looks: leap seconds,
	// and the steps of a time service that are smaller than its slewing.
	backBy = 2 * time.Second
	// quietAtMost bounds, in debounces, how long a run waits for quiet.
	quietAtMost = 10
	// lookEvery bounds how often events are answered with a look: a file that
	// somebody writes all the time costs no more than that.
	lookEvery = 50 * time.Millisecond
	// rereadEvery is how often what is remembered by the marks of its file is read
	// whole, without an event and beside the loop; before each run it is too.
	rereadEvery = 15 * time.Minute
	// postponeStep is how often a busy machine is looked at again.
	postponeStep = time.Minute
)

// changed answers an event. While something is published it is looked at at
// once, or as soon as lookEvery allows; else once it is quiet, since there is
// nothing to take back.
func (d *Daemon) changed(ctx context.Context) {
	debounce := time.Duration(d.cfg.Debounce)
	if !d.until.IsZero() {
		if rest := d.answered + lookEvery - d.opt.Clock.Mono(); rest > 0 {
			d.lookAt.set(rest)
			return
		}
		d.answer(ctx)
		return
	}
	if d.due != nil && d.due.waits {
		d.ask(d.due.request, debounce) // it is not quiet yet
	}
	if d.lookAt.t == nil {
		d.lookAt.set(debounce)
	}
}

// answer is a look because of an event.
func (d *Daemon) answer(ctx context.Context) {
	d.lookAt.stop()
	d.answered = d.opt.Clock.Mono()
	d.inspect(ctx, suspectAfter)
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
	d.spoil(d.faults.String())
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
// run, whoever asks for it and how often; somebody's own words are told first.
func (d *Daemon) ask(r request, quiet time.Duration) {
	now := d.opt.Clock.Mono()
	if d.due == nil {
		d.due = &due{request: r, since: now, waits: quiet > 0}
		d.runAt.set(quiet)
		return
	}
	if r != d.due.request {
		d.due.more++
		if r.cause == CauseTrigger && d.due.cause != CauseTrigger {
			d.due.request = r
		}
	}
	d.due.waits = d.due.waits || quiet > 0
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
	if !d.inspect(ctx, patientFor) {
		return
	}
	if why := d.faults.String(); why != "" {
		d.log.Warn("no run: nothing can be qualified", "asked", d.due.reason, "why", why)
		d.due = nil
		d.runAt.stop()
		return
	}
	r := Request{
		ID: string(id.New("watch")), Reason: d.due.reason + more(d.due.more), others: d.due.more, Cause: d.due.cause, Began: d.opt.Clock.Wall().UTC(), Runner: d.cfg.Runner,
		ValidFor: time.Duration(d.cfg.ValidFor), Within: time.Duration(d.cfg.RunWithin), Share: d.cfg.Share, Identity: d.identity,
	}
	d.due = nil
	d.runAt.stop()
	d.retryAt.stop()
	d.retry = time.Time{}
	d.postpone = time.Time{}
	d.running, d.spoiled = &r, ""
	d.log.Info("run", "run", r.ID, "cause", r.Cause, "reason", r.Reason)
	var child context.Context
	child, d.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go func() { d.done <- d.run(child, r) }()
}

// run makes a run that can be recorded. Unlike all else it works beside the loop.
func (d *Daemon) run(ctx context.Context, r Request) Result {
	if err := d.opt.Ledger.Begin(r); err != nil {
		return Result{Outcome: hostile.Unproven, Trouble: brief("the run could not be recorded: " + err.Error()), Ended: d.opt.Clock.Wall()}
	}
	d.opt.Reader.Reread(r.Runner)
	return d.opt.Suite.Run(ctx, r)
}
