package watch

import (
	"math/rand/v2"
	"time"

	"github.com/adhocore/gronx"
)

// Next returns the first time after from at which a run is due: the next moment
// of the cron expression, in from's zone, or from plus the interval; up to the
// jitter later, by chance (0 <= chance < 1).
func (s Schedule) Next(from time.Time, chance float64) (time.Time, error) {
	if s.Cron != "" {
		return gronx.NextTickAfter(s.Cron, from, false)
	}
	return from.Add(time.Duration(s.Every) + time.Duration(chance*float64(s.Jitter))), nil
}

// chance is the usual source of it.
func chance() float64 { return rand.Float64() }

// retryAfter is the pause before the n-th attempt to get an answer after runs
// that were unproven, n from 1: doubled each time, and never longer than most.
func retryAfter(first time.Duration, n int, most time.Duration) time.Duration {
	pause := first
	for range n - 1 {
		if pause >= most {
			break
		}
		pause *= 2
	}
	return min(pause, most)
}
