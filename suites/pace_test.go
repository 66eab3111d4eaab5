package suites

import (
	"testing"
	"time"
)

// On a machine at rest the bounds are the written ones; a scene whose pace was
// not measured has those too.
func TestBoundsFollowTheMachine(t *testing.T) {
	for slow, want := range map[float64]time.Duration{0: time.Second, 1: time.Second, 2.5: 2500 * time.Millisecond} {
		if got := (&Scene{slow: slow}).within(time.Second); got != want {
			t.Errorf("%v times slower: %s, want %s", slow, got, want)
		}
	}
}
