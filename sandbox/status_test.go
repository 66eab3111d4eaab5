package sandbox

import "testing"

var states = []State{"", StateAccepted, StateRunning, StateExited, StateCancelled, StateFailed, "paused"}

func TestStateCanFollow(t *testing.T) {
	legal := map[[2]State]bool{
		{"", StateAccepted}:             true,
		{StateAccepted, StateRunning}:   true,
		{StateAccepted, StateCancelled}: true,
		{StateAccepted, StateFailed}:    true,
		{StateRunning, StateExited}:     true,
		{StateRunning, StateCancelled}:  true,
		{StateRunning, StateFailed}:     true,
	}
	for _, previous := range states {
		for _, next := range states {
			if got := next.CanFollow(previous); got != legal[[2]State{previous, next}] {
				t.Errorf("%q after %q: CanFollow() = %v", next, previous, got)
			}
		}
	}
}

func TestStateTerminal(t *testing.T) {
	terminal := map[State]bool{StateExited: true, StateCancelled: true, StateFailed: true}
	for _, s := range states {
		if s.Terminal() != terminal[s] {
			t.Errorf("%q: Terminal() = %v", s, s.Terminal())
		}
		if !s.Terminal() {
			continue
		}
		for _, next := range states {
			if next.CanFollow(s) {
				t.Errorf("%q follows the terminal %q", next, s)
			}
		}
	}
}

func TestJobStatusCanFollow(t *testing.T) {
	receipt := Receipt{Job: Job{Digest: image}, Signature: []byte{1}}
	first := JobStatus{Receipt: receipt, State: StateAccepted, Revision: 1, UpdatedAt: noon}
	for _, c := range []struct {
		name           string
		previous, next JobStatus
		ok             bool
	}{
		{"first", JobStatus{}, first, true},
		{"started", first, JobStatus{Receipt: receipt, State: StateRunning, Revision: 2, UpdatedAt: noon}, true},
		{"started, clock set back", first, JobStatus{Receipt: receipt, State: StateRunning, Revision: 2, UpdatedAt: noon.Add(-1)}, true},
		{"first of revision zero", JobStatus{}, JobStatus{Receipt: receipt, State: StateAccepted}, false},
		{"first of revision two", JobStatus{}, JobStatus{Receipt: receipt, State: StateAccepted, Revision: 2}, false},
		{"first is running", JobStatus{}, JobStatus{Receipt: receipt, State: StateRunning, Revision: 1}, false},
		{"same again", first, first, false},
		{"same revision", first, JobStatus{Receipt: receipt, State: StateRunning, Revision: 1}, false},
		{"revision missed", first, JobStatus{Receipt: receipt, State: StateRunning, Revision: 3}, false},
		{"revision falls", first, JobStatus{Receipt: receipt, State: StateRunning}, false},
		{"same state", first, JobStatus{Receipt: receipt, State: StateAccepted, Revision: 2}, false},
		{"exited without running", first, JobStatus{Receipt: receipt, State: StateExited, Revision: 2}, false},
		{"another job", first, JobStatus{Receipt: Receipt{Signature: []byte{1}}, State: StateRunning, Revision: 2}, false},
		{"another receipt", first, JobStatus{Receipt: Receipt{Job: Job{Digest: image}, Signature: []byte{2}}, State: StateRunning, Revision: 2}, false},
		{"revision beyond exact JSON", JobStatus{Receipt: receipt, State: StateAccepted, Revision: 1<<53 - 1}, JobStatus{Receipt: receipt, State: StateRunning, Revision: 1 << 53}, false},
		{"revision wraps", JobStatus{Receipt: receipt, State: StateAccepted, Revision: 1<<64 - 1}, JobStatus{Receipt: receipt, State: StateRunning}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.next.CanFollow(c.previous); (err == nil) != c.ok {
				t.Errorf("CanFollow() = %v, want ok %v", err, c.ok)
			}
		})
	}
}
