package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/attest"
)

// Suite makes one whole run. It is a child process in production.
type Suite interface {
	// Run returns when the run has ended and nothing of it is left running. It
	// always returns a result: what went wrong with the run itself is its Trouble.
	// A cancelled context ends the run early, within a bounded time.
	Run(context.Context, Request) Result
}

// Request asks for one run.
type Request struct {
	ID       string        `json:"id"`     // of the daemon's making; sorts by time
	Reason   string        `json:"reason"` // in words, as it is told
	Cause    Cause         `json:"cause"`
	Began    time.Time     `json:"began"`
	Runner   string        `json:"runner"`    // the runner configuration
	ValidFor time.Duration `json:"valid_for"` //
	Within   time.Duration `json:"within"`    // how long it may take
	Share    Share         `json:"-"`
	Identity Identity      `json:"identity"` // what is qualified, read right before

	others int // wishes for a run that were coalesced into this one; Reason tells it too
}

// Cause is why a run is made, for counting. The list is closed.
type Cause string

// Causes.
const (
	CauseStart    Cause = "start"
	CauseSchedule Cause = "schedule"
	CauseChange   Cause = "change"  // of the identity
	CauseTrigger  Cause = "trigger" // somebody asked: the socket or SIGHUP
	CauseRetry    Cause = "retry"   // the last run was unproven
	CauseClock    Cause = "clock"   // the clock went back
	CauseExpiry   Cause = "expiry"  // the qualification expired, or could not be kept up
)

// Causes returns every cause in a fixed order.
func Causes() []Cause {
	return []Cause{CauseStart, CauseSchedule, CauseChange, CauseTrigger, CauseRetry, CauseClock, CauseExpiry}
}

// Result is how a run ended.
type Result struct {
	Outcome   hostile.Outcome   `json:"outcome"`
	Trouble   string            `json:"trouble,omitempty"` // why there is no verdict, in words
	Stopped   bool              `json:"stopped,omitempty"` // the daemon itself ended it early
	Ended     time.Time         `json:"ended"`
	Folder    string            `json:"folder"`          // where its files are; empty when there are none
	Run       string            `json:"run,omitempty"`   // its own id, "run_...", when there is a report
	Walls     []string          `json:"walls,omitempty"` // trials that did not hold, with verdict and reason; bounded
	Statement *attest.Statement `json:"-"`               // verified against our own key and the files; nil without
	Harness   string            `json:"-"`               // digest of the harness that ran it

	Report      *reports.Report     `json:"-"` // nil without one to rely on; for the comparison and the meter, then let go
	Drift       *reports.Difference `json:"-"` // from the last good run before; nil: not compared
	NotCompared string              `json:"-"` // why not, empty when there was no good run before
	PID         int                 `json:"-"` // of the child; 0 when none was started
}

// Noted is the reason as the child notes it in the history of runs: one of that
// history's words, and what behind a colon. A trigger that says deploy is one.
func (r Request) Noted() string {
	words := strings.TrimPrefix(strings.TrimSuffix(r.Reason, more(r.others)), askedFirst)
	kind, rest, ok := strings.Cut(words, ":")
	if r.Cause != CauseTrigger || kind != "deploy" {
		kind, rest, ok = string(r.Cause), " "+words, words != string(r.Cause)
	}
	switch {
	case ok:
		return kind + ":" + rest + more(r.others)
	case r.others > 0:
		return kind + ":" + more(r.others)
	}
	return kind
}

// more tells of further wishes behind the first.
func more(others int) string {
	if others == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d others)", others)
}

// askedFirst stands before somebody's own words.
const askedFirst = "asked: "

// maxDrift bounds the differences that are named.
const maxDrift = 20

// driftOf names what is otherwise in force than in the last good run.
func driftOf(d *reports.Difference) []string {
	if d == nil {
		return nil
	}
	words := d.DriftWords()
	if len(words) > maxDrift {
		words = append(words[:maxDrift:maxDrift], "and others: see harness diff")
	}
	for i, w := range words {
		words[i] = brief(w)
	}
	return words
}

// maxWalls bounds the trials that are named in a result.
const maxWalls = 50

// qualifies says whether the run qualifies that identity: empty when it does,
// else why it does not.
func (r Result) qualifies(i Identity) string {
	s := r.Statement
	switch {
	case r.Outcome != hostile.Qualified:
		words := string(r.Outcome)
		if r.Trouble != "" {
			words += ": " + r.Trouble
		} else if len(r.Walls) > 0 {
			words += ": " + r.Walls[0]
			if n := r.others(); n > 0 {
				words += fmt.Sprintf(" (and %d others)", n)
			}
		}
		return words
	case s == nil || s.Outcome != hostile.Qualified || len(s.Capabilities) == 0:
		return "the run left no attestation that qualifies"
	}
	for _, f := range []struct{ what, ran, now string }{
		{"runsc binary", s.RuntimeDigest, i.Runtime}, {"runner configuration", s.ConfigDigest, i.Config},
		{"kernel release", s.Host.Kernel, i.Kernel}, {"boot id", s.Host.BootID, i.BootID}, {"harness binary", r.Harness, i.Harness},
	} {
		if f.ran != f.now {
			return fmt.Sprintf("%s: the run was of %s, here is %s", f.what, brief(f.ran), brief(f.now))
		}
	}
	return ""
}

// others is how many trials did not hold beside the first that is named.
func (r Result) others() int {
	if r.Report == nil {
		return 0
	}
	n := 0
	for _, t := range r.Report.Trials {
		if t.Verdict != hostile.Held {
			n++
		}
	}
	return n - 1
}

// wallsOf names the trials of a report that did not hold, those first whose wall
// fell or was misnamed.
func wallsOf(r *reports.Report) (out []string) {
	trials := slices.Clone(r.Trials)
	order := []hostile.Verdict{hostile.Fell, hostile.Misnamed, hostile.Silent, hostile.Blind, hostile.Broken}
	slices.SortStableFunc(trials, func(a, b reports.Trial) int {
		return slices.Index(order, a.Verdict) - slices.Index(order, b.Verdict)
	})
	for _, t := range trials {
		if t.Verdict == hostile.Held {
			continue
		}
		if len(out) == maxWalls {
			return append(out, "and others: see the report")
		}
		out = append(out, brief(fmt.Sprintf("%s %s: %s", t.ID, t.Verdict, t.Reason)))
	}
	return out
}

// Ledger is the history of runs. Its methods are called one at a time. A run that
// came to begin notes itself there, as every harness run does: nothing is noted
// twice, and the ledger adds only what no child could.
type Ledger interface {
	// Begin sees to it that the run can be recorded, before it begins.
	Begin(Request) error
	// Finish sees to it that it was, and how it ended; an error means that it was
	// not, and that it qualifies nothing.
	Finish(Request, Result) error
}

// Meter is told what can be counted and shown. It must not block.
type Meter interface {
	Ran(Request, Result)
	// Published tells until when something is published; zero when nothing is.
	Published(until time.Time)
	// Identified tells what is here now; the zero Identity while it cannot be told.
	Identified(Identity)
}

// nothing is a Ledger and a Meter that keeps nothing.
type nothing struct{}

func (nothing) Begin(Request) error          { return nil }
func (nothing) Finish(Request, Result) error { return nil }
func (nothing) Ran(Request, Result)          {}
func (nothing) Published(time.Time)          {}
func (nothing) Identified(Identity)          {}
