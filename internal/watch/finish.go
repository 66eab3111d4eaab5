package watch

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/hostile"
)

// ended takes what a run has shown. What does not qualify is told at once; then
// the run is recorded, beside the loop, because others write the history too.
func (d *Daemon) ended(ctx context.Context, res Result) {
	d.result = &res
	d.cancel(nil)
	d.inspect(ctx, patientFor) // what changed while it ran makes a further run due
	if why := d.unfit(res); why != "" {
		d.lose("run " + d.running.ID + " does not qualify: " + why)
	}
	r := *d.running
	go func() { d.booked <- d.opt.Ledger.Finish(r, res) }()
}

// unfit is why the run that has ended does not qualify what is here now; empty
// when it does.
func (d *Daemon) unfit(res Result) string {
	if why := res.qualifies(d.identity); why != "" {
		return why
	}
	if why := d.faults.String(); why != "" {
		return why
	}
	if d.spoiled != "" {
		return d.spoiled
	}
	if changes := d.identity.Changes(d.running.Identity); len(changes) > 0 {
		return "while it ran, " + told(changes)
	}
	return ""
}

// finish draws the conclusions from a run once it is recorded, or could not be.
func (d *Daemon) finish(ctx context.Context, booked error) {
	// The last thing before it is published: recording can have taken long.
	goesOn := d.inspect(ctx, patientFor)
	r, res := *d.running, *d.result
	why := d.unfit(res)
	d.running, d.result = nil, nil
	if booked != nil {
		d.log.Error("the history of runs cannot be written", "run", r.ID, "why", booked.Error())
		if why == "" { // what history does not hold does not qualify
			why = "it could not be recorded: " + brief(booked.Error())
		}
	}
	if !goesOn { // nobody is told of what the end of the daemon did
		d.record(r, res)
		if err := d.memory.keep(d.cfg.StateDir); err != nil {
			d.log.Error("keep the state", "why", err.Error())
		}
		return
	}
	outcome := res.Outcome
	if why != "" && outcome == hostile.Qualified {
		outcome = hostile.Unproven
	}
	ran := d.record(r, res)
	level := slog.LevelInfo
	if why != "" {
		level = slog.LevelWarn
	}
	d.log.Log(ctx, level, "run ended", "run", r.ID, "report", res.Run, "outcome", res.Outcome, "trouble", res.Trouble, "why_not", why, "seconds", res.Ended.Sub(r.Began).Seconds())
	if why == "" {
		d.qualify(r, res, ran)
	} else {
		d.lose("run " + r.ID + " does not qualify: " + why)
		if outcome == hostile.Unproven && d.due == nil {
			d.unproven++
			pause := retryAfter(time.Duration(d.cfg.Retry), d.unproven, max(mostRetry, time.Duration(d.cfg.Retry)))
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

// mostRetry is the longest pause after unproven runs, unless the first is longer.
const mostRetry = 15 * time.Minute

// runsFolder is in the state folder.
const runsFolder = "runs"

// qualify publishes a good run. Its end is that of its attestation, on either
// clock.
func (d *Daemon) qualify(r Request, res Result, ran Ran) {
	lasts := min(res.Statement.Expires.Sub(d.wall), r.ValidFor, time.Duration(d.cfg.ValidFor))
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
		next := now.Add(min(postponeStep, time.Duration(d.cfg.Postpone.AtMost)))
		if !next.After(until) && next.Add(time.Duration(d.cfg.RunWithin)).Before(d.good.wall) {
			d.log.Info("the scheduled run is postponed", "load_per_processor", l, "at_most_until", until.Format(time.RFC3339))
			d.wait(next, "postponed: the machine is busy")
			return
		}
	}
	d.reschedule()
	d.ask(request{CauseSchedule, "schedule"}, 0)
}
