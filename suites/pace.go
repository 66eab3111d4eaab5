package suites

import (
	"context"
	"time"

	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/observers"
)

// Bounds for a machine at rest, on which each event comes within a second. A
// bound only matters when its event does not come, or when the machine is so
// loaded that it comes late: then the run's own measure of the machine makes it
// longer (see [Scene.within]). The caps under test are no such bounds, and stay
// as they are: a job that does not reach its act within its own wall clock is
// ended by that.
const (
	// controlWithin bounds all controls, which run at once. The longest, of oom,
	// waits twice for the kernel's rate limit of five seconds.
	controlWithin = 15 * time.Second
	// reachWithin bounds how long a payload may take to reach its act.
	reachWithin = 10 * time.Second
)

// within is a bound for a machine at rest, as long as this one needs it.
func (s *Scene) within(bound time.Duration) time.Duration {
	return time.Duration(float64(bound) * max(1, s.slow))
}

// measure takes the machine's pace. It runs beside the making of the scene, so
// that it costs no time, and measures a machine that is at work as the run's is.
func (s *Scene) measure(ctx context.Context) (err error) {
	s.slow, err = observers.Slowness(ctx, act.Spawner{Host: observers.Local(), Default: s.helpers()})
	return err
}
