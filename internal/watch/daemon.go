package watch

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"tenwalls.dev/harness/hostile"
)

// Clock is the machine's two clocks. The wall clock can be set; the other only
// goes forward.
type Clock struct {
	Wall func() time.Time
	Mono func() time.Duration // since any fixed moment
}

// MachineClock is the real one.
func MachineClock() Clock {
	began := time.Now()
	return Clock{
		Wall: func() time.Time { return time.Now().Round(0) }, // without the monotonic reading
		Mono: func() time.Duration { return time.Since(began) },
	}
}

// Reader reads the identity under a runner configuration, and tells what to
// watch: [Host] in production.
type Reader interface {
	// Read is one look. touched says that something below a tree that is watched
	// may have changed since the last, so that what is slow is not spared.
	Read(runner string, touched bool) (Identity, Watched, error)
	// Reread reads again what a look remembers by the marks of its file: a look
	// after it sees what leaves none.
	Reread(runner string)
}

// Options are what a daemon works with. What is nil has a form that does nothing,
// but for Suite, Reader and Publisher, which are needed.
type Options struct {
	Config     Config
	Reload     func() (Config, error) // nil: the configuration's own file
	Reader     Reader
	Suite      Suite
	Publisher  *Publisher
	Files      Files // nil: changes are seen at ticks only
	Clock      Clock
	Ledger     Ledger
	Meter      Meter
	Messengers []Messenger
	Alive      func() error       // an error ends the daemon: its state folder is gone
	Tell       func(state string) // sd_notify(3)
	Heartbeat  time.Duration      // of the service manager's watchdog; 0: none
	Chance     func() float64
	Proc       string // for the load; empty: /proc
	Version    string
	HostName   string
	Log        *slog.Logger
}

// Daemon decides when to run, and what is published. Run does all of it, in one
// goroutine; the other methods may be called from any.
type Daemon struct {
	opt      Options
	cfg      Config
	log      *slog.Logger
	notifier *notifier
	done     chan Result
	booked   chan error // what the ledger says of the run that has ended
	changes  <-chan struct{}
	reread   chan struct{} // all has been read again
	asked    chan request
	status   atomic.Pointer[Status]
	beat     atomic.Int64 // when the loop was last seen, on the monotonic clock

	began    time.Time
	wall     time.Time // both clocks at the last look
	mono     time.Duration
	identity Identity
	known    bool // identity is the last that was read
	faults   faults
	watched  Watched
	answered time.Duration // the last look because of an event
	good     *qualification
	until    time.Time // of what is published; zero when nothing is
	why      string    // nothing is published
	stuck    bool      // the published file could not be removed
	running  *Request
	cancel   context.CancelCauseFunc
	spoiled  string  // why the run that goes on qualifies nothing any more
	result   *Result // of it, once it has ended and is being recorded
	dead     error   // the daemon cannot go on
	due      *due
	unproven int // runs in a row
	postpone time.Time
	retry    time.Time // when an unproven run is made again; zero when it is not
	next     time.Time
	nextWhy  string
	memory   memory
	unseen   string // why changes are seen at ticks only
	runs     int64

	tickAt, renewAt, runAt, nextAt, retryAt, lookAt, rereadAt alarm
}

// qualification is a good run whose identity has not changed since.
type qualification struct {
	result Result
	ran    Ran
	wall   time.Time     // its end on either clock: who sets one back gains nothing
	mono   time.Duration //
}

// request is somebody's wish for a run.
type request struct {
	cause  Cause
	reason string
}

// due is the one further run, whoever asked for it.
type due struct {
	request
	more  int // asked for so many times more
	since time.Duration
	waits bool // for quiet
	ready bool // it is quiet, only another run is in the way
}

// alarm is a timer that knows whether it is set.
type alarm struct{ t *time.Timer }

func (a *alarm) set(d time.Duration) { a.stop(); a.t = time.NewTimer(max(0, d)) }
func (a *alarm) stop() {
	if a.t != nil {
		a.t.Stop()
		a.t = nil
	}
}

// c is nil, which never receives, while the alarm is not set.
func (a *alarm) c() <-chan time.Time {
	if a.t == nil {
		return nil
	}
	return a.t.C
}

// New returns a daemon that has done nothing yet.
func New(o Options) (*Daemon, error) {
	if o.Suite == nil || o.Reader == nil || o.Publisher == nil {
		return nil, errors.New("new daemon: a suite, a reader of the identity and a publisher are needed")
	}
	if o.Reload == nil {
		o.Reload = func() (Config, error) { return LoadConfig(o.Config.File()) }
	}
	if o.Clock.Wall == nil {
		o.Clock = MachineClock()
	}
	if o.Ledger == nil {
		o.Ledger = nothing{}
	}
	if o.Meter == nil {
		o.Meter = nothing{}
	}
	if o.Alive == nil {
		o.Alive = func() error { return nil }
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	if o.Chance == nil {
		o.Chance = chance
	}
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Daemon{opt: o, cfg: o.Config, log: o.Log, done: make(chan Result, 1), booked: make(chan error, 1), reread: make(chan struct{}, 1), asked: make(chan request, 16), why: "the first run has not ended"}
	d.began = o.Clock.Wall()
	d.wall, d.mono = d.began, o.Clock.Mono()
	d.show()
	return d, nil
}

// Ask asks for a run now. It never blocks: while a run is due already, it is that
// one.
func (d *Daemon) Ask(reason string) {
	select {
	case d.asked <- request{CauseTrigger, askedFirst + brief(reason)}:
	default: // so many are waiting that a run is due
	}
}

// Run works until the context ends, or until Alive fails. What is published is
// withdrawn before it returns.
func (d *Daemon) Run(ctx context.Context) (err error) {
	if d.memory, err = recall(d.cfg.StateDir); err != nil {
		d.log.Warn("what an earlier daemon knew is lost", "why", err.Error())
	}
	d.notifier = newNotifier(d.log, filepath.Join(d.cfg.StateDir, waitingFile), d.opt.Messengers)
	defer d.notifier.close()
	defer func() { err = errors.Join(err, d.stop()) }()
	d.withdraw("the first run has not ended") // what a killed daemon left
	if d.opt.Files != nil {
		d.changes = d.opt.Files.Changed()
	}
	if !d.inspect(ctx, patientFor) {
		return d.dead
	}
	d.ask(request{CauseStart, "start"}, 0)
	d.tickAt.set(time.Duration(d.cfg.Tick))
	d.rereadAt.set(rereadEvery)
	d.reschedule()
	d.show()
	d.opt.Tell("READY=1")
	var heart <-chan time.Time
	if d.opt.Heartbeat > 0 {
		t := time.NewTicker(d.opt.Heartbeat)
		defer t.Stop()
		heart = t.C
	}
	for ctx.Err() == nil && d.dead == nil {
		select {
		case <-ctx.Done():
		case <-d.changes:
			d.changed(ctx)
		case <-d.lookAt.c():
			d.answer(ctx)
		case <-d.tickAt.c():
			d.tickAt.set(time.Duration(d.cfg.Tick))
			d.inspect(ctx, patientFor)
			d.unstick()
		case <-d.renewAt.c():
			d.renewAt.stop()
			if d.inspect(ctx, patientFor) {
				d.renew()
			}
		case <-d.rereadAt.c():
			d.rereadAt.stop()
			runner := d.cfg.Runner
			go func() { d.opt.Reader.Reread(runner); d.reread <- struct{}{} }()
		case <-d.reread:
			d.rereadAt.set(rereadEvery)
			d.inspect(ctx, patientFor)
		case <-d.nextAt.c():
			d.nextAt.stop()
			d.scheduled()
		case <-d.retryAt.c():
			d.retryAt.stop()
			d.retry = time.Time{}
			d.ask(request{CauseRetry, "the last run was unproven"}, 0)
		case r := <-d.asked:
			d.ask(r, 0)
		case <-d.runAt.c():
			d.runAt.stop()
			d.begin(ctx)
		case res := <-d.done:
			d.ended(ctx, res)
		case err := <-d.booked:
			d.finish(ctx, err)
		case <-heart:
		}
		d.show()
		d.opt.Tell("WATCHDOG=1")
	}
	return d.dead
}

// stop withdraws first, and then ends the run.
func (d *Daemon) stop() error {
	d.opt.Tell("STOPPING=1")
	d.withdraw("the daemon has ended")
	for _, a := range []*alarm{&d.tickAt, &d.renewAt, &d.runAt, &d.nextAt, &d.retryAt, &d.lookAt, &d.rereadAt} {
		a.stop()
	}
	var err error
	if d.running != nil {
		if d.result == nil {
			d.cancel(errors.New("the daemon was told to end"))
			res := <-d.done
			d.cancel(nil)
			d.result = &res
			d.booked <- d.opt.Ledger.Finish(*d.running, res)
		}
		err = <-d.booked
		d.record(*d.running, *d.result)
		err = errors.Join(err, d.memory.keep(d.cfg.StateDir))
		d.running, d.result = nil, nil
	}
	if d.stuck {
		err = errors.Join(err, errors.New("the published file could not be removed: it expires by itself"))
	}
	d.show()
	return err
}

// record keeps a run that has ended.
func (d *Daemon) record(r Request, res Result) Ran {
	ran := Ran{
		ID: r.ID, Run: res.Run, Cause: r.Cause, Reason: r.Reason, Outcome: res.Outcome, Trouble: res.Trouble, Walls: res.Walls,
		Began: r.Began, Ended: res.Ended, Folder: res.Folder, Identity: r.Identity,
		Drift: driftOf(res.Drift), NotCompared: res.NotCompared,
	}
	for _, words := range ran.Drift {
		d.log.Warn("drift", "run", r.ID, "report", res.Run, "what", words)
	}
	if ran.NotCompared != "" {
		d.log.Warn("drift is not known", "run", r.ID, "report", res.Run, "why", ran.NotCompared)
	}
	d.memory.Last = &ran
	d.runs++
	d.opt.Meter.Ran(r, res)
	return ran
}

// notify tells a change of the outcome, and only a change.
func (d *Daemon) notify(outcome hostile.Outcome, why string, res Result, id string) {
	before := d.memory.Outcome
	if before == outcome {
		return
	}
	d.memory.Outcome = outcome
	n := Notice{
		ID: id, Host: d.opt.HostName, At: d.opt.Clock.Wall().UTC(), Before: before, Outcome: outcome, Why: why, Walls: res.Walls,
		Run: res.Run, Folder: res.Folder,
	}
	if g := d.memory.LastGood; g != nil && d.known {
		n.Changes = d.identity.Changes(g.Identity)
	}
	d.log.Info("the outcome has changed", "before", before, "outcome", outcome, "why", why, "changes", told(n.Changes))
	if err := d.notifier.send(n); err != nil {
		d.log.Error("notify", "why", err.Error())
	}
	if err := d.memory.keep(d.cfg.StateDir); err != nil {
		d.log.Error("keep the state", "why", err.Error())
	}
}

// busy is the load per processor when that is above the configured bound.
func (d *Daemon) busy() (float64, bool) {
	if d.cfg.Postpone.Load == 0 {
		return 0, false
	}
	l, err := load(d.opt.Proc, runtime.NumCPU())
	if err != nil {
		d.log.Warn("the load is not known, so nothing is postponed", "why", err.Error())
		return 0, false
	}
	return l, l > d.cfg.Postpone.Load
}
