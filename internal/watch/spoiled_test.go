package watch

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/sandbox/runsc"
)

// There and back while a run goes on: what it tried in between is not known, so
// that it qualifies nothing, though all is as before when it ends. A further run
// does.
func TestThereAndBackSpoilsTheRun(t *testing.T) {
	cases := map[string]struct {
		there, back func(r *rig)
		why         string
	}{
		"identity": {
			func(r *rig) { r.identity.Runtime = dig("other") }, func(r *rig) { r.identity.Runtime = dig("runsc") },
			"while it ran, runsc binary: " + dig("runsc") + " before, " + dig("other") + " now",
		},
		"identity unknown": {
			func(r *rig) { r.readErr = errors.New("no runsc") }, func(r *rig) { r.readErr = nil },
			"while it ran, what would be qualified cannot be told: no runsc",
		},
		"configuration": {
			func(r *rig) { r.cfgErr = errors.New("tick: 0s") }, func(r *rig) { r.cfgErr = nil },
			"while it ran, configuration: tick: 0s",
		},
		"clock": {
			func(r *rig) { r.offset = -time.Minute }, func(r *rig) { r.offset = 0 },
			"while it ran, the clock went back by 1m0s",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(r *rig) { r.takes = time.Minute })
				r.start()
				for _, change := range []func(*rig){c.there, c.back} {
					r.pass(5 * time.Second)
					r.set(func() { change(r) })
					r.event()
					r.pass(time.Second) // nothing is published, so that a look waits for quiet
				}
				r.pass(r.takes - 12*time.Second)
				r.wantWithdrawn(c.why)
				if r.d.Status().Last == nil || r.count() != 2 {
					t.Fatalf("%d runs, want a further one", r.count())
				}
				if n := saw(r, &r.notices); n[len(n)-1].Outcome != hostile.Unproven {
					t.Errorf("told %+v", n[len(n)-1])
				}
				r.pass(r.takes)
				r.wantPublished()
			})
		})
	}
}

// What does not qualify is withdrawn before it is recorded, and nothing is held up
// while it is: another change is seen, and nothing is published that changed
// meanwhile.
func TestRecordingTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.wantPublished()
		r.set(func() { r.booking = 10 * time.Second; r.outcome = r.ends(hostile.Unproven, "the disk is full") })
		r.d.Ask("test")
		r.pass(r.takes)
		r.wantWithdrawn("the disk is full")
		if len(saw(r, &r.finished)) != 1 {
			t.Fatal("it is recorded already")
		}
		r.pass(r.booking)
		if len(saw(r, &r.finished)) != 2 {
			t.Fatal("it is not recorded")
		}
		r.set(func() { r.outcome = r.good })
		r.d.Ask("again")
		r.pass(r.takes + r.booking)
		r.wantPublished()

		r.d.Ask("and again")
		r.pass(r.takes + time.Second)
		r.wantPublished() // what the run before showed still stands
		r.set(func() { r.identity.Image = "other" })
		r.event()
		r.wantWithdrawn("base image: empty before, other now")
		r.pass(r.booking)
		r.wantWithdrawn("while it ran, base image")
		r.pass(r.takes + r.booking)
		r.wantPublished()
	})
}

// A change that no event tells of, while a run is being recorded: it is looked at
// last before it would be published.
func TestTheLastLookIsAfterRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.booking = 3 * time.Second })
		r.start()
		r.pass(r.takes + time.Second)
		r.set(func() { r.identity.Image = "other" })
		r.pass(r.booking - time.Second)
		r.wantWithdrawn("base image: empty before, other now")
	})
}

// The daemon is told to end while its last run is being recorded.
func TestStopWhileRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.booking = 10 * time.Second })
		r.start()
		r.pass(r.takes + time.Second)
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if _, ok := r.published(); ok || len(r.finished) != 1 || r.d.memory.Last == nil {
			t.Errorf("published %v, recorded %q, last %+v", ok, r.finished, r.d.memory.Last)
		}
	})
}

// A look hangs, as on a network file system whose server is gone.
func TestALookHangs(t *testing.T) {
	for name, hang := range map[string]func(r *rig){
		"identity":      func(r *rig) { r.readIn = time.Hour },
		"configuration": func(r *rig) { r.reloadIn = time.Hour },
		"watch":         func(r *rig) { r.watchIn = time.Hour },
		"alive":         func(r *rig) { r.aliveIn = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.start()
				r.pass(r.takes)
				r.set(func() { hang(r) })
				r.event()
				r.wantPublished()
				r.pass(suspectAfter)
				r.wantWithdrawn("it takes long to tell")
				began := time.Now()
				if err := r.stop(); err != nil || time.Since(began) > 0 {
					t.Errorf("ended after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// While nobody tells of a change a look may take longer, and an event ends that.
func TestPatienceEndsWithAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.cfg.PublishLife = runsc.Duration(time.Hour) })
		r.start()
		r.pass(r.takes)
		r.set(func() { r.readIn = patientFor - time.Second })
		r.pass(30*time.Second - r.takes + r.readIn) // the tick
		r.wantPublished()
		r.pass(30*time.Second + time.Second - r.readIn) // in the middle of the next
		r.event()
		r.wantPublished()
		r.pass(suspectAfter)
		r.wantWithdrawn("it takes long to tell")
		r.set(func() { r.readIn = 0 })
		r.pass(patientFor)
		r.wantPublished()
	})
}

// The loop hangs beyond the life of what is published: nobody is told that it is.
func TestStatusOfAHangingDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.cfg.PublishLife = runsc.Duration(3 * time.Second) })
		r.start()
		r.pass(r.takes + 100*time.Millisecond)
		s := r.d.status.Load()
		r.d.status.Store(s)
		r.wantPublished()
		r.cancel()
		<-r.ended
		r.d.status.Store(s)
		time.Sleep(3 * time.Second)
		late := r.d.Status()
		if late.Until != nil || late.Published != "" || late.Attested != nil || !strings.Contains(late.Why, "has expired") || late.ready() == nil {
			t.Errorf("%+v", late)
		}
	})
}

// What leaves no mark on its file shows when it is read whole: before a run, and
// now and then.
func TestReadWholeNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.wantPublished()
		before := saw(r, &r.rereads)
		r.set(func() { r.unmarked = dig("other") })
		r.pass(rereadEvery - r.takes)
		r.wantWithdrawn("runsc binary: " + dig("runsc") + " before, " + dig("other") + " now")
		r.pass(time.Minute)
		if n := saw(r, &r.rereads); n != before+2 {
			t.Errorf("read %d times, want now and before the run", n-before)
		}
		r.wantPublished()
		r.set(func() { r.unmarked = dig("third") })
		r.d.Ask("test")
		r.pass(r.takes)
		r.wantWithdrawn("runsc binary: the run was of " + dig("other") + ", here is " + dig("third"))
		r.pass(time.Minute)
		r.wantPublished()
	})
}

// Somebody's own words are told, also where a run was due already.
func TestATriggerIsToldFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.identity.Runtime = dig("other") })
		r.event()
		r.d.Ask("deploy")
		r.pass(r.takes)
		if r.count() != 2 || r.runs[1].Cause != CauseTrigger || r.runs[1].Noted() != "deploy: (and 1 others)" {
			t.Errorf("%d runs: %+v", r.count(), r.runs[len(r.runs)-1])
		}
	})
}
