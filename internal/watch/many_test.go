package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/sandbox/runsc"
)

// A thousand changes in a minute, with runs that take no time at all and with
// runs as long as real ones: as many runs as there is room for, never two at
// once, and nothing of it is published while it goes on.
func TestAThousandChangesInAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		most  int
	}{"no time": {0, 13}, "as real ones": {12 * time.Second, 6}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(r *rig) { r.takes = c.takes })
				r.start()
				r.pass(time.Second + r.takes)
				r.wantPublished()
				before := r.count()
				for n := range 1000 {
					r.set(func() { r.identity.Config = dig(fmt.Sprint(n)) })
					r.event()
					r.pass(60 * time.Millisecond)
				}
				runs := r.count() - before
				if runs < 1 || runs > c.most {
					t.Errorf("%d runs, want 1 to %d", runs, c.most)
				}
				r.pass(time.Minute)
				r.wantPublished()
				if s, _ := r.published(); s.ConfigDigest != dig("999") {
					t.Error("published is not the last")
				}
				if more := r.count() - before - runs; more > 2 {
					t.Errorf("%d runs after it", more)
				}
			})
		})
	}
}

// A file that somebody writes all the time costs a bounded number of looks, and the
// one write that changes something is seen all the same.
func TestEventsWithoutChangeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(time.Second + r.takes)
		r.wantPublished()
		before := saw(r, &r.looks)
		for range 1000 {
			r.event()
			r.pass(time.Millisecond)
		}
		if n := saw(r, &r.looks) - before; n < 2 || n > 21 {
			t.Errorf("%d looks in a second", n)
		}
		r.wantPublished()
		r.pass(time.Second)
		r.event()
		r.set(func() { r.identity.Config = dig("other") })
		r.event()
		r.wantPublished() // it was looked at just now
		r.pass(lookEvery)
		r.wantWithdrawn("identity changed")
	})
}

// However often and by whomever it is asked: one runs, and one is due.
func TestAskedManyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		for n := range 1000 {
			r.d.Ask(fmt.Sprintf("deploy %d", n))
			if n%10 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		r.pass(10 * r.takes)
		if r.count() != 2 || !strings.Contains(r.runs[1].Reason, "asked: deploy 0 (and ") {
			t.Errorf("%d runs, the second because %q", r.count(), r.runs[1].Reason)
		}
	})
}

// An unproven run is made again, after longer and longer pauses; a refused one is
// not: it was answered.
func TestUnprovenIsTriedAgain(t *testing.T) {
	for outcome, want := range map[hostile.Outcome]int{hostile.Unproven: 8, hostile.Refused: 1} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(r *rig) { r.takes = 0 })
			r.outcome = r.ends(outcome, "")
			r.start()
			r.pass(time.Hour) // after 1, 2, 4, 8, 15, 15 and 15 minutes
			if r.count() != want {
				t.Errorf("%s: %d runs in an hour, want %d", outcome, r.count(), want)
			}
			if len(r.notices) != 1 {
				t.Errorf("%s: %d notices of one change", outcome, len(r.notices))
			}
		})
	}
}

// A busy machine puts a scheduled run off, as long as that harms nothing.
// The pauses begin anew once a run came to an outcome.
func TestPausesBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.takes = 0 })
		r.outcome = r.ends(hostile.Unproven, "")
		r.start()
		r.pass(time.Second)
		if s := r.d.Status(); s.Next.Sub(r.d.opt.Clock.Wall()) != time.Minute-time.Second || !strings.HasPrefix(s.NextWhy, "retry") {
			t.Errorf("the next run is at %s: %s", s.Next, s.NextWhy)
		}
		r.pass(7 * time.Minute) // after 1, 2 and 4 minutes
		r.set(func() { r.outcome = r.good })
		r.d.Ask("test")
		r.pass(time.Second)
		r.wantPublished()
		if s := r.d.Status(); s.NextWhy != "schedule" {
			t.Errorf("the next run is at %s: %s", s.Next, s.NextWhy)
		}
		r.set(func() { r.outcome = r.ends(hostile.Unproven, "") })
		r.d.Ask("test")
		r.pass(time.Second)
		before := r.count()
		r.pass(time.Minute)
		if n := r.count() - before; n != 1 {
			t.Errorf("%d runs in the minute after", n)
		}
	})
}

// Whatever a run was made for, the schedule counts from its end; and of old runs the
// last and the last good one stay.
func TestWhatARunLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.cfg.KeepRuns = 1 })
		folder := func(ends func(Request) Result) func(Request) Result {
			return func(q Request) Result {
				res := ends(q)
				res.Folder = filepath.Join(r.cfg.StateDir, runsFolder, q.ID)
				must(t, os.Mkdir(res.Folder, 0o755))
				return res
			}
		}
		r.outcome = folder(r.good)
		r.start()
		r.pass(3 * time.Hour)
		r.set(func() { r.outcome = folder(r.ends(hostile.Refused, "")) })
		for range 3 {
			r.d.Ask("test")
			r.pass(r.takes)
		}
		if next := r.d.Status().Next; next.Sub(r.d.opt.Clock.Wall()) != 6*time.Hour {
			t.Errorf("the next run is at %s", next)
		}
		left, err := os.ReadDir(filepath.Join(r.cfg.StateDir, runsFolder))
		must(t, err)
		if len(left) != 2 || left[0].Name() != r.runs[0].ID || left[1].Name() != r.runs[3].ID {
			t.Errorf("left %v of %d runs", left, r.count())
		}
	})
}

func TestPostponed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.cfg.Postpone.Load, r.cfg.PublishLife = 0.5, seconds(1800) })
		proc := filepath.Join(r.d.opt.Proc, "loadavg")
		busy := func(load int) {
			if err := os.WriteFile(proc, fmt.Appendf(nil, "%d.00 0.10 0.10 1/100 1\n", load), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		busy(100)
		r.start()
		r.pass(6*time.Hour + time.Minute)
		if r.count() != 1 {
			t.Fatalf("%d runs: the first is not put off, and the second is", r.count())
		}
		if s := r.d.Status(); !strings.Contains(s.NextWhy, "postponed") {
			t.Errorf("next because %q", s.NextWhy)
		}
		busy(0)
		r.pass(2 * time.Minute)
		if r.count() != 2 {
			t.Errorf("%d runs on a machine that is quiet again", r.count())
		}
		busy(100)
		r.pass(6*time.Hour + 30*time.Minute)
		if r.count() != 3 {
			t.Errorf("%d runs: it may be put off by 30 minutes at most", r.count())
		}
		// Nothing is published: nothing is put off.
		r.set(func() { r.outcome = r.ends(hostile.Refused, "") })
		r.d.Ask("test")
		r.pass(time.Minute)
		r.pass(6 * time.Hour)
		if r.count() != 5 {
			t.Errorf("%d runs", r.count())
		}
	})
}

// Shorter spans of time hold for what is published already.
func TestSpansAreTakenUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) { r.cfg.PublishLife = seconds(3600) })
		r.start()
		r.pass(r.takes)
		qualified := time.Now()
		r.set(func() { r.cfg.PublishLife, r.cfg.ValidFor = seconds(10), seconds(3600) })
		r.event()
		r.pass(time.Millisecond)
		s, _ := r.published()
		if life := time.Until(s.Expires); life > 10*time.Second {
			t.Errorf("published for %s", life)
		}
		if d := r.d.Status().Qualified.Sub(qualified); d != time.Hour {
			t.Errorf("qualified for %s", d)
		}
		r.set(func() { r.takes = time.Minute })
		r.pass(time.Hour - time.Second)
		r.wantPublished()
		r.pass(time.Duration(r.cfg.Tick))
		r.wantWithdrawn("has expired")
	})
}

// So are the schedule and the tick.
func TestScheduleAndTickAreTakenUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.cfg.Schedule.Every, r.cfg.Tick = seconds(3600), seconds(2) })
		r.event()
		if next := r.d.Status().Next; next.Sub(r.d.opt.Clock.Wall()) != time.Hour {
			t.Errorf("the next run is at %s", next)
		}
		r.set(func() { r.identity.Kernel = "6.18.1" })
		r.pass(2 * time.Second)
		r.wantWithdrawn("kernel release")
	})
}

// What the identity is read from is watched before it is read, with the daemon's own
// files; when there is more of it, it is read again.
func TestWhatIsReadIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		want := func(more ...string) {
			t.Helper()
			all := append([]string{r.cfg.File(), r.cfg.StateDir, "/runsc"}, more...)
			if got := saw(r, &r.watching); !slices.Equal(got, all) {
				t.Errorf("watched: %q, want %q", got, all)
			}
		}
		want()
		before := saw(r, &r.looks)
		r.event()
		if n := saw(r, &r.looks) - before; n != 1 {
			t.Errorf("looked %d times", n)
		}
		r.pass(time.Second)
		before = saw(r, &r.looks)
		r.set(func() { r.extra = []string{"/etc/runsc"} })
		r.event()
		want("/etc/runsc")
		if n := saw(r, &r.looks) - before; n != 2 {
			t.Errorf("looked %d times: it could have changed before it was watched", n)
		}
	})
}

// However busy the machine is, a run has time to end before the qualification does.
func TestPostponedNoFurtherThanTheQualification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) {
			r.cfg.Postpone.Load, r.cfg.ValidFor = 1, runsc.Duration(6*time.Hour+20*time.Minute)
		})
		write(t, filepath.Join(r.d.opt.Proc, "loadavg"), fmt.Sprint(100*runtime.NumCPU())+" 0 0 1/2 3")
		r.start()
		r.pass(6*time.Hour + 5*time.Minute)
		if r.count() != 1 {
			t.Fatalf("%d runs", r.count())
		}
		r.pass(5 * time.Minute)
		if r.count() != 2 {
			t.Errorf("%d runs, with run_within left of the qualification", r.count())
		}
	})
}

// What was wrong with a configuration is told, once, and put right it is run.
func TestTheConfigurationIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.cfgErr = errors.New("tick: 0s: must be 1s to 1h0m0s") })
		r.event()
		r.d.Ask("test")
		r.pass(time.Hour)
		if r.count() != 1 {
			t.Errorf("%d runs under an invalid configuration", r.count())
		}
		r.wantWithdrawn("tick: 0s")
		r.set(func() { r.cfgErr = nil; r.cfg.Schedule.Every = runsc.Duration(time.Hour) })
		r.event()
		r.pass(time.Minute)
		r.wantPublished()
		r.pass(time.Hour)
		if r.count() != 3 {
			t.Errorf("%d runs, want one for the mending and one of the new schedule", r.count())
		}
		if len(r.notices) != 3 || !strings.Contains(r.notices[1].Why, "tick: 0s") {
			t.Errorf("notices %+v", r.notices)
		}
	})
}

// Both in trouble at once: a mended one does not hide the other.
func TestTwoFaultsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.cfgErr, r.readErr = errors.New("config"), errors.New("runsc") })
		r.event()
		r.set(func() { r.readErr = nil })
		r.pass(time.Minute)
		r.set(func() { r.readErr = errors.New("runsc") })
		r.pass(time.Minute)
		r.set(func() { r.cfgErr = nil })
		r.pass(time.Minute)
		if r.count() != 1 {
			t.Errorf("%d runs while one of the two is wrong", r.count())
		}
		r.set(func() { r.readErr = nil })
		r.pass(time.Minute)
		r.wantPublished()
	})
}

// A day of work every five minutes leaves nothing behind in the daemon but what
// is kept on purpose.
func TestADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(r *rig) {
			r.cfg.Schedule = Schedule{Every: runsc.Duration(5 * time.Minute)}
			r.cfg.PublishLife, r.cfg.KeepRuns = seconds(180), 10
			good := r.outcome
			r.outcome = func(q Request) Result { // each leaves a folder
				res := good(q)
				res.Folder = filepath.Join(r.cfg.StateDir, runsFolder, q.ID)
				if err := os.Mkdir(res.Folder, 0o755); err != nil {
					t.Error(err)
				}
				return res
			}
		})
		r.start()
		r.pass(time.Hour)
		before := take(t)
		for range 23 {
			r.pass(time.Hour)
			r.wantPublished()
		}
		after := take(t)
		runs := r.count()
		if runs < 270 || runs > 289 {
			t.Errorf("%d runs in a day", runs)
		}
		r.runs = nil
		t.Logf("a day, %d runs: goroutines %d to %d, descriptors %d to %d, heap %d to %d KiB", runs, before.goroutines, after.goroutines, before.files, after.files, before.heap>>10, after.heap>>10)
		if after.goroutines > before.goroutines || after.files > before.files || after.heap > before.heap+(1<<20) {
			t.Errorf("before %+v, after %+v", before, after)
		}
		kept, err := os.ReadDir(filepath.Join(r.cfg.StateDir, runsFolder))
		if err != nil || len(kept) != 10 {
			t.Errorf("%d folders of runs are kept, %v", len(kept), err)
		}
	})
}

// amounts are what must not grow.
type amounts struct {
	goroutines, files int
	heap              uint64 // bytes
}

func take(t *testing.T) amounts {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return amounts{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}
