package suites

import (
	"errors"
	"sync/atomic"
	"time"

	"tenwalls.dev/harness/sandbox/runsc"
)

// mandate bounds the provisional capability under which a run's probes are
// accepted: it ends a while after the run's last cell has begun. So a long grant
// or a slow host does not outlive it, and nothing is accepted once a run hangs. It
// counts on the monotonic clock: setting the wall clock back does not lengthen it.
type mandate struct {
	life  time.Duration
	until atomic.Pointer[time.Time]
}

// provisional is how long a mandate lasts beyond what its jobs may take.
const provisional = 5 * time.Minute

// newMandate lasts for a cell's jobs under these limits, from now.
func newMandate(l runsc.LimitsConfig) *mandate {
	m := &mandate{life: provisional + 2*time.Duration(l.Wall)}
	m.renew()
	return m
}

// renew lets it last as long again from now.
func (m *mandate) renew() {
	until := time.Now().Add(m.life)
	m.until.Store(&until)
}

// end is until when it lasts; an error when it does no longer.
func (m *mandate) end() (time.Time, error) {
	rest := time.Until(*m.until.Load())
	if rest <= 0 {
		return time.Time{}, errors.New("the run's provisional capability has expired: no cell of it has begun for long")
	}
	return time.Now().Add(rest), nil
}
