package observers

import (
	"context"
	"fmt"
	"time"
)

// The kernel writes at most so many oom-kill lines, the only ones that name the
// cgroup that ran out, in a window that begins with the first of them: the
// default of its rate limits (include/linux/ratelimit_types.h, used by
// oom_kill_process in mm/oom_kill.c). It is one limit for the whole machine, and
// no file shows or sets it.
const (
	oomBurst  = 10
	oomWindow = 5 * time.Second
)

// windowMargin covers the kernel's tick, in which it counts the window.
const windowMargin = 100 * time.Millisecond

// spentAt counts the lines that may belong to the window in which the kill at
// that time, by the log's clock, was written: its own and what came at most a
// window before it.
func spentAt(history []oomRecord, at time.Duration) (n int) {
	for _, r := range history {
		if r.named && r.at <= at && at-r.at < oomWindow {
			n++
		}
	}
	return n
}

// waitOut waits until a window that stands open now is over, whenever it began.
// The kernel gives no event for that; a machine on which nothing was killed in
// the last seconds never comes here.
func waitOut(ctx context.Context) error {
	timer := time.NewTimer(oomWindow + windowMargin)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until the kernel writes OOM records again: %w", ctx.Err())
	}
}

// limitWords say what is known when the records of kills are missing.
func limitWords(left int) string {
	return fmt.Sprintf("the kernel left out %d of its OOM records: it writes at most %d in %s for the whole machine (mm/oom_kill.c, printk rate limit); run again when nothing has been killed for want of memory for %s",
		left, oomBurst, oomWindow, oomWindow)
}

// overlooked tells why the log cannot say whom the kernel killed in the job's
// cgroup: the cgroup's counter says that it did, no record names it, and the log
// shows that records were left out. It is empty when the log can be believed.
//
// events is by how much the counter grew; named counts the records of the job's
// own; unnamed are victims without one, and suppressed is what the kernel itself
// said it left out.
func overlooked(events, named, unnamed int64, suppressed int) string {
	if events == 0 || named > 0 || unnamed == 0 && suppressed == 0 {
		return ""
	}
	return fmt.Sprintf("the job's cgroup counts %d OOM kills, and no record names it: %s", events, limitWords(max(int(unnamed), suppressed)))
}
