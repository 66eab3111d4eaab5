package runsc

import (
	"reflect"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox"
)

func TestWithinLowersAndNeverRaises(t *testing.T) {
	w := DefaultConfig().Walls()
	grant := DefaultConfig().Limits.Limits()
	if got := w.within(grant); !reflect.DeepEqual(got, w) {
		t.Errorf("the grant itself changes the walls: %+v", got)
	}
	above := grant
	above.CPUMillis, above.MemoryBytes, above.Processes, above.ScratchBytes = 1<<40, 1<<50, 1<<30, 1<<50
	above.WallTime, above.OutputBytes, above.ArtifactBytes = 1000*time.Hour, 1<<50, 1<<50
	if got := w.within(above); !reflect.DeepEqual(got, w) {
		t.Errorf("limits above the grant raise the walls: %+v", got)
	}
	for _, c := range []struct {
		name  string
		ask   func(*sandbox.Limits)
		lower func(*Walls)
	}{
		{"cpu", func(l *sandbox.Limits) { l.CPUMillis = 1000 }, func(w *Walls) { w.CPU, w.CPULimit = time.Second, limitFactor*time.Second }},
		{"memory", func(l *sandbox.Limits) { l.MemoryBytes = 1 << 20 }, func(w *Walls) { w.Memory = 1 << 20 }},
		{"processes", func(l *sandbox.Limits) { l.Processes = 9 }, func(w *Walls) { w.Processes = 9 }},
		{"scratch", func(l *sandbox.Limits) { l.ScratchBytes = 4096 }, func(w *Walls) { w.Scratch = 4096 }},
		{"wall", func(l *sandbox.Limits) { l.WallTime = time.Second }, func(w *Walls) { w.Wall = time.Second }},
		{"output", func(l *sandbox.Limits) { l.OutputBytes = 7 }, func(w *Walls) { w.Output = 7 }},
		{"artifacts", func(l *sandbox.Limits) { l.ArtifactBytes = 7 }, func(*Walls) {}},
	} {
		ask, want := grant, w
		c.ask(&ask)
		c.lower(&want)
		if got := w.within(ask); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

func TestProbeChangesItsOwnCopy(t *testing.T) {
	c := DefaultConfig()
	p := Probe{Change: func(w *Walls) {
		w.Filter, w.Memory = w.Filter.With("socket"), 0
		w.Namespaces = w.Namespaces[:2]
	}}
	if got := p.walls(c.Walls(), c.Limits.Limits()); got.Memory != 0 || len(got.Namespaces) != 2 {
		t.Errorf("the change is lost: %+v", got)
	}
	if got := (Probe{}).walls(c.Walls(), c.Limits.Limits()); !reflect.DeepEqual(got, c.Walls()) || len(got.Namespaces) != 5 {
		t.Errorf("a probe changed the walls of another job: %+v", got)
	}
}
