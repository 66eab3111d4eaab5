package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Parameters: "wall_ms", the granted wall clock (10000 when missing), and
// "bound". The count is ms.
var _ = route("wallclock", "sleeper", func(p *Probe) {
	granted := numberOr(p, "wall_ms", 10_000)
	whole := time.Duration(bound(p, granted)) * time.Millisecond
	p.Reached("nanosleep", fmt.Sprintf("%d ms granted", granted))
	slept := sleep(whole)
	p.Happened("nanosleep", slept.Milliseconds(), fmt.Sprintf("%d ms granted", granted))
})

// sleep sleeps in one system call, so that no timer of the runtime is at work.
// It returns how long that took by the guest's clock.
func sleep(d time.Duration) time.Duration {
	start := time.Now()
	for rest := d; rest > 0; rest = d - time.Since(start) {
		ts := unix.NsecToTimespec(int64(rest))
		unix.Nanosleep(&ts, nil)
	}
	return time.Since(start)
}
