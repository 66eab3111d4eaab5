package watch

import (
	"context"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/hostile"
)

// finish takes what a run has shown.
func (d *Daemon) finish(ctx context.Context, res Result) {
	r := *d.running
	d.running = nil
	d.cancel(nil)
	d.inspect() // what changed while it ran makes a further run due
	why := res.qualifies(d.identity)
	switch changes := d.identity.Changes(r.Identity); {
	case why != "":
	case d.faults.String() != "":
		why = d.faults.String()
	case len(changes) > 0:
		why = "while it ran, " + told(changes)
	}
	if err := d.opt.Ledger.Finish(r, res); err != nil {
		d.log.Error("the history of runs cannot be written", "run", r.ID, "why", err.Error())
		if why == "" { // what history does not hold does not qualify
			why = "it could not be recorded: " + brief(err.Error())
		}
	}
	outcome := res.Outcome
	if why != "" && outcome == hostile.Qualified {
		outcome = hostile.Unproven
	}
	ran := d.record(r, res)
	d.log.Info("run ended", "run", r.ID, "report", res.Run, "outcome", res.Outcome, "trouble", res.Trouble, "why_not", why, "seconds", res.Ended.Sub(r.Began).Seconds())
	if why == "" {
		d.qualify(r, res, ran)
	} else {
		d.lose("run " + r.ID + " does not qualify: " + why)
		if outcome == hostile.Unproven && d.due == nil {
			d.unproven++
			pause := retryAfter(time.Duration(d.cfg.Retry), d.unproven, 15*time.Minute)
			d.retryAt.set(pause)
			d.retry = d.wall.Add(pause)
		}
	}
	if outcome != hostile.Unproven {
		d.unproven = 0
	}
	d.notify(outcome, why, res, r.ID)
	d.reschedule()
	if err := d.memory.keep(d.cfg.StateDir); err != nil {
		d.log.Error("keep the state", "why", err.Error())
	}
	var never []string
	for _, ran := range []*Ran{d.memory.Last, d.memory.LastGood} {
		if ran != nil && ran.Folder != "" {
			never = append(never, ran.Folder)
		}
	}
	if err := prune(filepath.Join(d.cfg.StateDir, runsFolder), d.cfg.KeepRuns, never...); err != nil {
		d.log.Warn("remove old runs", "why", err.Error())
	}
	if d.due != nil && d.due.ready {
		d.begin(ctx)
	}
}

// runsFolder is in the state folder.
const runsFolder = "runs"

// qualify publishes a good run. Its end is that of its attestation, on either
// clock.
func (d *Daemon) qualify(r Request, res Result, ran Ran) {
	lasts := min(res.Statement.Expires.Sub(d.wall), r.ValidFor)
	res.Report, res.Drift = nil, nil // as large as all the rest of the daemon
	d.good = &qualification{result: res, ran: ran, wall: d.wall.Add(lasts), mono: d.mono + lasts}
	d.memory.LastGood = &ran
	d.renew()
}

// reschedule computes the next run of the schedule from now.
func (d *Daemon) reschedule() {
	now := d.opt.Clock.Wall()
	next, err := d.cfg.Schedule.Next(now, d.opt.Chance())
	if err != nil {
		// The configuration was checked, so this is an expression that has run out.
		d.log.Error("no next run by the schedule", "why", err.Error())
		d.next, d.nextWhy = time.Time{}, err.Error()
		d.nextAt.stop()
		return
	}
	d.wait(next, "schedule")
}

func (d *Daemon) wait(next time.Time, why string) {
	d.next, d.nextWhy = next, why
	d.nextAt.set(next.Sub(d.opt.Clock.Wall()))
}

// scheduled answers the schedule, unless the machine is busy and there is time:
// while nothing is published no run is put off, nor beyond the end of what is.
func (d *Daemon) scheduled() {
	now := d.opt.Clock.Wall()
	if l, busy := d.busy(); busy && d.good != nil {
		if d.postpone.IsZero() {
			d.postpone = now
		}
		until := d.postpone.Add(time.Duration(d.cfg.Postpone.AtMost))
		next := now.Add(postponeStep)
		if !next.After(until) && next.Add(time.Duration(d.cfg.RunWithin)).Before(d.good.wall) {
			d.log.Info("the scheduled run is postponed", "load_per_processor", l, "at_most_until", until.Format(time.RFC3339))
			d.wait(next, "postponed: the machine is busy")
			return
		}
	}
	d.reschedule()
	d.ask(request{CauseSchedule, "schedule"}, 0)
}
