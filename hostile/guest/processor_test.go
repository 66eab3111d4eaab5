package main

import (
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

func TestMeterLeavesOutWaiting(t *testing.T) {
	m := meter{fastest: math.MaxInt64}
	for _, took := range []int64{100, 110, 250, 100_000} {
		m.add(took)
	}
	if want := int64(100 + 110 + 250 + 300); m.used != want {
		t.Errorf("used %d, not %d", m.used, want)
	}
}

func TestSpinnersEndAtTheirShare(t *testing.T) {
	for name, s := range map[string]spinner{
		"plainly":  {},
		"in calls": {way: spinInCalls},
		"deaf":     {way: spinDeaf},
		"relay":    {until: 10 * time.Millisecond, relay: true},
	} {
		t.Run(name, func(t *testing.T) {
			meters, err := newMeters(1)
			if err != nil {
				t.Fatal(err)
			}
			s.share = 40 * time.Millisecond
			if _, errno := launch(&s, &meters[0]); errno != 0 {
				t.Fatal(errno)
			}
			_, used, ended, err := awaitSpinner()
			if err != nil || ended != 0 {
				t.Fatalf("ended by %v, %v", ended, err)
			}
			if s.relay { // the first child only: the others are not ours on a host
				if used > 200 {
					t.Errorf("a child of a relay used %d ms", used)
				}
				return
			}
			if got := time.Duration(meters[0].used); got < s.share || got > 2*s.share || used == 0 {
				t.Errorf("%v by the work, %d ms by rusage, of a share of %v", got, used, s.share)
			}
		})
	}
}

func TestStopEndsSpinners(t *testing.T) {
	meters, err := newMeters(2)
	if err != nil {
		t.Fatal(err)
	}
	s := spinner{share: time.Hour}
	for i := range meters {
		if _, errno := launch(&s, &meters[i]); errno != 0 {
			t.Fatal(errno)
		}
	}
	stop(meters)
	if left := childrenOf(t); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLimitPlaceNeedsTheLimitsTime(t *testing.T) {
	for _, c := range []struct {
		used    int64
		limit   uint64
		limited bool
		want    hostile.Place
	}{
		{2000, 2, true, hostile.ProcessLimit},
		{1950, 2, true, hostile.ProcessLimit},
		{1500, 2, true, hostile.Unknown}, // somebody else's SIGKILL
		{4000, 2, true, hostile.Unknown},
		{2000, 0, false, hostile.Unknown},
	} {
		if got := limitPlace(c.used, c.limit, c.limited); got != c.want {
			t.Errorf("%+v gave %q", c, got)
		}
	}
}

func TestTouchInChildCountsToTheMissingPage(t *testing.T) {
	fd, remove, err := named(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 2*4096); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(fd, 0, 4*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	for size, want := range map[int]unix.Signal{2 * 4096: 0, 4 * 4096: unix.SIGBUS} {
		end, touched, err := touchInChild(b[:size])
		if end != want || touched != 2*4096 || err != nil {
			t.Errorf("%d bytes mapped: ended by %v after %d, %v", size, end, touched, err)
		}
	}
}
