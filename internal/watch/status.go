package watch

import (
	"fmt"
	"strings"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// Status is what the daemon says of itself. Times are UTC, absent when there is
// none.
type Status struct {
	At         time.Time       `json:"at"`
	Host       string          `json:"host"`
	Version    string          `json:"version"`
	Began      time.Time       `json:"began"`
	Config     string          `json:"config"`    // file
	Published  string          `json:"published"` // file; empty while nothing is published
	Until      *time.Time      `json:"until,omitempty"`
	Qualified  *time.Time      `json:"qualified_until,omitempty"` // how long it can be renewed without a further run
	Why        string          `json:"why,omitempty"`             // nothing is published
	Stuck      bool            `json:"stuck,omitempty"`           // what was published could not be removed: it expires by itself
	Identity   *Identity       `json:"identity,omitempty"`        // absent while it is not known
	Running    *Request        `json:"running,omitempty"`
	Due        string          `json:"due,omitempty"` // a further run, and why
	Next       *time.Time      `json:"next,omitempty"`
	NextWhy    string          `json:"next_why,omitempty"`
	Last       *Ran            `json:"last,omitempty"`
	LastGood   *Ran            `json:"last_good,omitempty"`
	Outcome    hostile.Outcome `json:"outcome,omitempty"` // the last that was told
	Runs       int64           `json:"runs"`              // since the daemon began
	TickOnly   string          `json:"tick_only,omitempty"`
	Unheard    []Undelivered   `json:"undelivered,omitempty"` // receivers of notices whose last delivery failed
	Attested   []byte          `json:"-"`                     // what is published
	beatWithin time.Duration
}

// Status is the state after the last event, as it stands now: what has expired
// since is not told as published, whatever keeps the loop from saying so. It is
// never nil.
func (d *Daemon) Status() *Status {
	s := d.status.Load()
	now := d.opt.Clock.Wall()
	if s.Until == nil || now.Before(*s.Until) {
		return s
	}
	late := *s // what only the loop knows stays as it was
	late.At, late.Until, late.Published, late.Attested = now.UTC(), nil, "", nil
	late.Why = fmt.Sprintf("what was published has expired at %s and was not renewed: the daemon has been busy since %s", s.Until.Format(time.RFC3339), s.At.Format(time.RFC3339))
	return &late
}

// show stores the state for readers.
func (d *Daemon) show() {
	utc := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		u := t.UTC().Round(0)
		return &u
	}
	next, why := d.next, d.nextWhy
	if !d.retry.IsZero() && (next.IsZero() || d.retry.Before(next)) {
		next, why = d.retry, "retry: the last run was unproven"
	}
	s := &Status{
		At: d.opt.Clock.Wall().UTC(), Host: d.opt.HostName, Version: d.opt.Version, Began: d.began.UTC(), Config: d.cfg.File(), Why: d.why,
		Until: utc(d.until), Next: utc(next), NextWhy: why, Last: d.memory.Last, LastGood: d.memory.LastGood, Outcome: d.memory.Outcome,
		Stuck: d.stuck, Runs: d.runs, TickOnly: d.unseen, Running: d.running,
		beatWithin: 3*max(time.Duration(d.cfg.Tick), d.opt.Heartbeat) + time.Minute,
	}
	if d.notifier != nil {
		s.Unheard = d.notifier.undelivered()
	}
	if d.good != nil {
		s.Qualified = utc(d.good.wall)
	}
	if !d.until.IsZero() {
		s.Published, s.Attested = d.opt.Publisher.Path, d.opt.Publisher.Published()
	}
	if d.known {
		i := d.identity
		s.Identity = &i
	}
	if d.due != nil {
		s.Due = d.due.reason
	}
	d.status.Store(s)
	d.beat.Store(int64(d.opt.Clock.Mono()))
	d.opt.Tell("STATUS=" + s.line())
}

// alive says whether the loop still turns.
func (d *Daemon) alive() error {
	s := d.Status()
	if since := d.opt.Clock.Mono() - time.Duration(d.beat.Load()); since > s.beatWithin {
		return fmt.Errorf("the daemon has done nothing for %s", since.Round(time.Second))
	}
	return nil
}

// ready says whether something is published, and why not.
func (s *Status) ready() error {
	if s.Until == nil {
		return fmt.Errorf("nothing is published: %s", s.Why)
	}
	return nil
}

func (s *Status) line() string {
	if s.Until == nil {
		return "not qualified: " + brief(s.Why)
	}
	return "qualified, published until " + s.Until.Format(time.RFC3339)
}

// shownWalls bounds the trials that are named to people, the worst first.
const shownWalls = 8

// Text is the status for people.
func (s *Status) Text() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s %s\n", name, reports.Harmless(fmt.Sprintf(format, args...)))
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case s.Until == nil:
		row("not qualified", "%s", s.Why)
	case s.Qualified == nil: // no daemon of ours says so
		row("qualified", "published in %s until %s", s.Published, at(*s.Until))
	default:
		row("qualified", "until %s; published in %s until %s", at(*s.Qualified), s.Published, at(*s.Until))
	}
	if s.Stuck {
		row("note", "what was published could not be removed; it is not renewed and expires by itself")
	}
	ran := func(name string, r *Ran) {
		if r == nil {
			row(name, "none")
			return
		}
		row(name, "%s: %s, %s, %.1f s, because: %s", r.ID, r.Outcome, at(r.Ended), r.Ended.Sub(r.Began).Seconds(), r.Reason)
		if r.Trouble != "" {
			row("", "%s", r.Trouble)
		}
		for _, w := range r.Walls[:min(len(r.Walls), shownWalls)] {
			row("", "%s", w)
		}
		if len(r.Walls) > shownWalls {
			row("", "and others: see the report, or harness status --json")
		}
		for _, w := range r.Drift {
			row("", "drift: %s", w)
		}
		if r.NotCompared != "" {
			row("", "drift is not known: %s", r.NotCompared)
		}
		if r.Folder != "" {
			row("", "%s", r.Folder)
		}
	}
	if s.Running != nil {
		row("running", "%s since %s, because: %s", s.Running.ID, at(s.Running.Began), s.Running.Reason)
	}
	if s.Due != "" {
		row("due", "%s", s.Due)
	}
	if s.Next != nil {
		row("next", "%s (%s)", at(*s.Next), s.NextWhy)
	}
	ran("last run", s.Last)
	if s.LastGood != nil && (s.Last == nil || s.LastGood.ID != s.Last.ID) {
		ran("last good run", s.LastGood)
		if s.Identity != nil {
			for _, c := range s.Identity.Changes(s.LastGood.Identity) {
				row("since then", "%s", c)
			}
		}
	}
	for _, u := range s.Unheard {
		row("note", "a notice was not delivered to %s, %d wait: %s", u.To, u.Waiting, u.Why)
	}
	if s.TickOnly != "" {
		row("note", "changes are seen at the next tick only: %s", s.TickOnly)
	}
	return b.String()
}
