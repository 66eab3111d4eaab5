package observers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A bound says when to give up on an event that may never come. One that fits a
// machine at rest makes an observer blind on a loaded one, where the event comes
// late; one that fits the slowest machine makes every blind observer wait for
// it. So bounds follow the machine, measured in the run itself: by how long a
// child of the harness's takes to start and be heard of, which needs what every
// control needs, namely processors, memory and the kernel's scheduling.
const (
	// usualStart is well above what a machine at rest takes, 4 to 20 ms, so
	// that there the bounds are the written ones.
	usualStart = 50 * time.Millisecond
	// slowest keeps a machine on which nothing goes on from holding a run.
	slowest = 12
)

// slowness is how many times slower than usual a machine is on which a child
// took so long: 1 to slowest.
func slowness(took time.Duration) float64 {
	return min(max(1, float64(took)/float64(usualStart)), slowest)
}

// stretched is a bound for a machine at rest, on one that is so slow.
func stretched(bound time.Duration, slow float64) time.Duration {
	return time.Duration(float64(bound) * slow)
}

// Slowness starts a child that does nothing and tells by it how many times
// slower than usual this machine is just now: at least 1, at most 12. What waits
// for an event multiplies its bound by it. It is no measure of a wall, and
// judges nothing.
func Slowness(ctx context.Context, spawn Spawner) (float64, error) {
	began := time.Now()
	child, err := spawn.Spawn(ctx, Child{Act: ActNothing})
	if err != nil {
		return 0, fmt.Errorf("measure the machine's pace: %w", err)
	}
	state, err := waitChild(ctx, child)
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	if err != nil {
		return 0, fmt.Errorf("measure the machine's pace: %w", err)
	}
	return slowness(time.Since(began)), nil
}
