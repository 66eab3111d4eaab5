package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/sandbox/runsc"
)

func TestAGoodRunIsPublishedAndRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if err := os.MkdirAll(filepath.Dir(r.cfg.Publish), 0o755); err != nil {
			t.Fatal(err)
		}
		// What a killed daemon left.
		if err := os.WriteFile(r.cfg.Publish, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.wantWithdrawn("the first run has not ended")
		r.pass(r.takes)
		for range 300 { // over an hour of renewals at other moments than the timers'
			r.wantPublished()
			s, _ := r.published()
			if left := s.Expires.Sub(r.d.opt.Clock.Wall()); left < 30*time.Second || left > time.Minute {
				t.Fatalf("it is valid for %s more: renewed too late, or too long", left)
			}
			if all := saw(r, &r.meter); !all[len(all)-1].Equal(s.Expires) {
				t.Fatalf("the meter shows %s, published until %s", all[len(all)-1], s.Expires)
			}
			r.pass(17 * time.Second)
		}
		if r.count() != 1 {
			t.Errorf("%d runs in an hour and a half at one in 6 h", r.count())
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		r.wantWithdrawn("the daemon has ended")
		if last := r.meter[len(r.meter)-1]; !last.IsZero() {
			t.Errorf("the meter shows %s", last)
		}
	})
}

// Each of these takes a publication back, at the event where there is one.
func TestWithdrawn(t *testing.T) {
	cases := map[string]struct {
		change func(r *rig)
		after  time.Duration // without any event; 0: at once, by one
		why    string
	}{
		"identity changed": {func(r *rig) { r.identity.Runtime = dig("other") }, 0, "identity changed: runsc binary: " + dig("runsc")},
		"missed event":     {func(r *rig) { r.identity.KernelCommand = "init=/bin/sh" }, 30 * time.Second, "kernel command line: quiet before, init=/bin/sh now"},
		"identity unknown": {func(r *rig) { r.readErr = errors.New("no runsc") }, 0, "cannot be told: no runsc"},
		"configuration":    {func(r *rig) { r.cfgErr = errors.New("tick: 0s") }, 0, "configuration: tick: 0s"},
		"another place":    {func(r *rig) { r.cfg.StateDir += "/other" }, 0, "state_dir was changed"},
		"clock back":       {func(r *rig) { r.offset = -time.Minute }, 18 * time.Second, "the clock went back by 1m0s"},
		"slow look":        {func(r *rig) { r.readIn = 20 * time.Second }, 25 * time.Second, "it takes long to tell"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.start()
				r.pass(r.takes + time.Second)
				r.wantPublished()
				r.set(func() { c.change(r); r.takes = time.Hour })
				if c.after > 0 {
					r.pass(c.after)
				} else {
					r.event()
				}
				r.wantWithdrawn(c.why)
			})
		})
	}
}

// What is here now is shown as it is, and not at all while it cannot be told.
func TestTheIdentityIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		want := func(i Identity) {
			t.Helper()
			s, meter := r.d.Status().Identity, saw(r, &r.here)
			if (i == Identity{}) != (s == nil) || s != nil && *s != i || meter != i {
				t.Errorf("status %+v, meter %+v, want %+v", s, meter, i)
			}
		}
		want(boxed)
		other := boxed
		other.Guest = dig("other")
		r.set(func() { r.identity = other })
		r.event()
		want(other)
		r.set(func() { r.readErr = errors.New("no runsc") })
		r.pass(time.Minute)
		want(Identity{})
		r.set(func() { r.readErr = nil })
		r.pass(time.Minute)
		want(other)
	})
}

// A look that takes long takes back what is published, and when nothing has changed
// after all it is published again without a run.
func TestASlowLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.readIn = 2 * suspectAfter })
		r.event()
		r.wantPublished()
		r.set(func() { r.readIn = 0 })
		r.pass(suspectAfter)
		r.wantWithdrawn("it takes long to tell")
		r.pass(suspectAfter)
		r.wantPublished()
		if r.count() != 1 {
			t.Errorf("%d runs", r.count())
		}
	})
}

// Nothing is published again before a run has shown that the host is as it was.
func TestPutBackIsQualifiedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.identity.Runtime = dig("other"); r.outcome = r.ends(hostile.Refused, "") })
		r.event()
		if r.count() != 1 {
			t.Error("a run before it was quiet")
		}
		r.pass(time.Duration(r.cfg.Debounce))
		if r.count() != 2 {
			t.Fatalf("%d runs once it was quiet", r.count())
		}
		r.pass(r.takes)
		r.wantWithdrawn("does not qualify: refused")
		r.set(func() { r.identity.Runtime = dig("runsc"); r.outcome = r.good })
		r.event()
		r.pass(time.Second) // while nothing is published a look waits for quiet, too
		r.wantWithdrawn("identity changed")
		r.pass(time.Second + r.takes)
		r.wantPublished()
		if r.count() != 3 || r.runs[1].Cause != CauseChange || r.runs[2].Cause != CauseChange {
			t.Errorf("%d runs", r.count())
		}
		var told []string
		for _, n := range r.notices {
			told = append(told, fmt.Sprintf("%s>%s %v", n.Before, n.Outcome, n.Changes))
		}
		want := fmt.Sprintf(">qualified [], qualified>refused [runsc binary: %s before, %s now], refused>qualified []", dig("runsc"), dig("other"))
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("told: %s\nwant: %s", got, want)
		}
	})
}

func TestNoOutcomeButQualifiedIsPublished(t *testing.T) {
	cases := map[string]struct {
		change func(r *rig)
		why    string
	}{
		"refused":  {func(r *rig) { r.outcome = r.ends(hostile.Refused, "") }, "refused"},
		"unproven": {func(r *rig) { r.outcome = r.ends(hostile.Unproven, "") }, "unproven"},
		"broken":   {func(r *rig) { r.outcome = r.ends(hostile.Unproven, "signal: killed") }, "signal: killed"},
		"no statement": {func(r *rig) {
			r.outcome = func(q Request) Result { res := r.good(q); res.Statement = nil; return res }
		}, "no attestation"},
		"a selection": {func(r *rig) {
			r.outcome = func(q Request) Result { res := r.good(q); res.Statement.Capabilities = nil; return res }
		}, "no attestation that qualifies"},
		"of another runsc": {func(r *rig) {
			r.outcome = func(q Request) Result { res := r.good(q); res.Statement.RuntimeDigest = dig("x"); return res }
		}, "runsc binary: the run was of"},
		"of another configuration": {func(r *rig) {
			r.outcome = func(q Request) Result { res := r.good(q); res.Statement.ConfigDigest = dig("x"); return res }
		}, "runner configuration: the run was of"},
		"of another kernel": {func(r *rig) {
			r.outcome = func(q Request) Result { res := r.good(q); res.Statement.Host.Kernel = "x"; return res }
		}, "kernel release: the run was of x"},
		"of another boot": {func(r *rig) {
			r.outcome = func(q Request) Result { res := r.good(q); res.Statement.Host.BootID = "x"; return res }
		}, "boot id: the run was of x"},
		"an attestation of another outcome": {func(r *rig) {
			r.outcome = func(q Request) Result { res := r.good(q); res.Statement.Outcome = hostile.Refused; return res }
		}, "no attestation that qualifies"},
		"by another harness": {func(r *rig) {
			r.outcome = func(q Request) Result { res := r.good(q); res.Harness = dig("x"); return res }
		}, "harness binary: the run was of"},
		"changed while it ran": {func(r *rig) {
			r.outcome = func(q Request) Result { r.set(func() { r.identity.KernelCommand = "x" }); return r.good(q) }
		}, "while it ran, kernel command line"},
		"a fault that came while it ran": {func(r *rig) {
			r.outcome = func(q Request) Result { r.set(func() { r.cfgErr = errors.New("tick: 0s") }); return r.good(q) }
		}, "configuration: tick: 0s"},
		"told of no more while it ran": {func(r *rig) {
			r.outcome = func(q Request) Result { r.set(func() { r.readErr = errors.New("no runsc") }); return r.good(q) }
		}, "cannot be told: no runsc"},
		"not recorded":    {func(r *rig) { r.ledgerNo = errors.New("disk full") }, "it could not be recorded: disk full"},
		"not to be begun": {func(r *rig) { r.beginNo = errors.New("disk full") }, "unproven: the run could not be recorded: disk full"},
		"already expired": {func(r *rig) {
			r.outcome = func(q Request) Result {
				res := r.good(q)
				res.Statement.Issued, res.Statement.Expires = res.Statement.Issued.Add(-time.Hour), res.Statement.Issued.Add(-time.Minute)
				return res
			}
		}, "could not be published"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.start()
				r.pass(r.takes)
				r.wantPublished() // the first is good, so that there is something to withdraw
				r.set(func() { c.change(r) })
				r.d.Ask("test")
				r.pass(r.takes)
				r.wantWithdrawn(c.why)
			})
		})
	}
}

// A qualification ends on either clock, whatever the schedule says.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) {
			r.cfg.ValidFor, r.cfg.Schedule.Every = runsc.Duration(time.Hour), runsc.Duration(3*time.Hour)
		})
		r.start()
		r.pass(r.takes)
		r.wantPublished()
		r.set(func() { r.takes = 10 * time.Hour })
		r.pass(time.Hour - time.Second)
		r.wantPublished()
		r.pass(31 * time.Second)
		r.wantWithdrawn("has expired")
		if n := r.notices; len(n) != 2 || n[1].Outcome != hostile.Unproven || !strings.Contains(n[1].Why, "has expired") {
			t.Errorf("told %+v", n)
		}
		if r.count() != 2 || r.runs[1].Cause != CauseExpiry {
			t.Errorf("%d runs, want one that renews it", r.count())
		}
	})
}

// It ends with the run's own attestation when that is sooner than valid_for.
func TestARunThatIsValidForLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.outcome = func(q Request) Result {
			q.ValidFor = time.Hour
			return r.good(q)
		}
		r.start()
		r.pass(r.takes)
		if s := r.d.Status(); s.Qualified == nil || s.Qualified.Sub(r.d.opt.Clock.Wall()) != time.Hour {
			t.Errorf("qualified until %s", s.Qualified)
		}
	})
}

// Small steps back, each below what is noticed, gain nothing: the other clock
// counts on.
func TestTheClockIsSetBackBySmallSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) {
			r.cfg.ValidFor, r.cfg.Schedule.Every = runsc.Duration(time.Hour), runsc.Duration(30*time.Hour)
		})
		r.start()
		r.pass(r.takes)
		r.set(func() { r.takes = 10 * time.Hour })
		const steps = 59*60 + 40
		for range steps {
			r.set(func() { r.offset -= 800 * time.Millisecond })
			r.event()
			r.pass(time.Second)
		}
		r.wantPublished()
		if s, _ := r.published(); s.Expires.Sub(r.d.opt.Clock.Wall()) > time.Hour-steps*time.Second {
			t.Errorf("published beyond the end on the other clock: %s", s.Expires)
		}
		r.pass(2 * time.Minute)
		r.wantWithdrawn("has expired")
	})
}

// A step back that no time service makes ends the qualification, and a run on the
// new time renews it; the schedule starts from there.
func TestTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.offset -= backBy })
		r.event()
		r.wantPublished()
		r.pass(time.Minute)
		r.set(func() { r.offset -= backBy + time.Millisecond })
		r.event()
		r.wantWithdrawn("the clock went back by 2s")
		r.pass(time.Minute)
		r.wantPublished()
		r.set(func() { r.offset -= 5 * time.Hour })
		r.event()
		if next := r.d.Status().Next; next.Sub(r.d.opt.Clock.Wall()) > 6*time.Hour {
			t.Errorf("the next run is at %s, now it is %s", next, r.d.opt.Clock.Wall())
		}
		r.pass(time.Minute)
		r.wantPublished()
		if n := r.count(); n != 3 || r.runs[1].Cause != CauseClock || r.runs[2].Cause != CauseClock {
			t.Errorf("%d runs: %+v", n, r.runs)
		}
	})
}

func TestTheClockIsSetAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.offset = 2 * time.Hour })
		r.pass(31 * time.Second)
		r.wantPublished() // renewed on the new time
		if r.set(func() { r.offset = 7 * time.Hour }); r.count() != 1 {
			t.Errorf("%d runs", r.count())
		}
		r.pass(31*time.Second + r.takes)
		if r.count() != 2 || r.runs[1].Cause != CauseSchedule {
			t.Errorf("%d runs: the schedule is told by the wall clock", r.count())
		}
		r.set(func() { r.offset = 48 * time.Hour; r.takes = time.Minute })
		r.pass(31 * time.Second)
		r.wantWithdrawn("has expired")
		r.pass(time.Minute)
		r.wantPublished()
	})
}

func TestTheStateFolderIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.wantPublished()
		r.set(func() { r.aliveErr = errors.New("state_dir was removed") })
		r.event()
		if err := <-r.ended; err == nil || !strings.Contains(err.Error(), "state_dir was removed") {
			t.Error(err)
		}
		r.wantWithdrawn("the daemon has ended")
	})
}

// What a service manager is told (sd_notify(3)): that the daemon is ready when
// what an earlier one left is gone, that it lives, and that it ends.
func TestTheServiceManagerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.heart, r.cfg.Tick = 10*time.Second, runsc.Duration(time.Hour) })
		must(t, os.MkdirAll(filepath.Dir(r.cfg.Publish), 0o755))
		write(t, r.cfg.Publish, "left")
		left := true
		tell := r.d.opt.Tell
		r.d.opt.Tell = func(state string) {
			if state == "READY=1" {
				left = isFile(r.cfg.Publish)
			}
			tell(state)
		}
		r.start()
		r.pass(r.takes)
		told := saw(r, &r.told)
		if left || slices.Index(told, "READY=1") < 0 || slices.Index(told, "READY=1") > slices.Index(told, "WATCHDOG=1") {
			t.Errorf("told %q; the file of an earlier daemon is there: %v", told, left)
		}
		alive := func() (n int) {
			for _, s := range saw(r, &r.told) {
				if s == "WATCHDOG=1" {
					n++
				}
			}
			return n
		}
		before := alive()
		r.pass(15 * time.Second) // before the next renewal
		if alive() == before {
			t.Error("it does not tell that it lives while nothing happens")
		}
		if !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "STATUS=qualified, published until ") }) {
			t.Errorf("told %q", told)
		}
		must(t, r.stop())
		if at := slices.Index(r.told, "STOPPING=1"); at < 0 || slices.Contains(r.told[at:], "WATCHDOG=1") {
			t.Errorf("at the end it told %q", r.told[max(0, at):])
		}
	})
}

// The daemon is told to end in the middle of a run.
func TestStopEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(time.Second)
		began := time.Now()
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s", took)
		}
		m, err := recall(r.cfg.StateDir)
		if err != nil || m.Last == nil || !strings.Contains(m.Last.Trouble, "told to end") {
			t.Errorf("%+v, %v", m.Last, err)
		}
		if len(r.finished) != 1 || r.finished[0] != r.runs[0].ID {
			t.Errorf("the ledger was told the end of %v", r.finished)
		}
	})
}

// What cannot be removed is told, is not renewed, and goes when it can.
func TestWithdrawingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.wantPublished()
		must(t, os.Remove(r.cfg.Publish)) // a folder that is not empty cannot be unlinked
		must(t, os.MkdirAll(filepath.Join(r.cfg.Publish, "x"), 0o755))
		r.set(func() { r.takes, r.identity.Runtime = time.Hour, dig("other") })
		r.event()
		if s := r.d.Status(); s.Until != nil || !s.Stuck || !strings.Contains(s.Text(), "could not be removed") {
			t.Errorf("%+v", s)
		}
		must(t, os.Remove(filepath.Join(r.cfg.Publish, "x")))
		r.pass(30 * time.Second)
		r.wantWithdrawn("identity changed")
		if r.d.Status().Stuck {
			t.Error("stuck still")
		}
	})
}

// A disk without room: nothing is published, and it is as soon as there is room.
func TestPublishingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		dir := filepath.Dir(r.cfg.Publish)
		if err := os.WriteFile(dir, nil, 0o644); err != nil { // a file where the folder should be
			t.Fatal(err)
		}
		r.start()
		r.pass(r.takes)
		if s := r.d.Status(); s.Until != nil || !strings.Contains(s.Why, "could not be published") {
			t.Errorf("%+v", s)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Minute)
		r.wantPublished()
	})
}
