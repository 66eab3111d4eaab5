package observers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"tenwalls.dev/harness/internal/cgroup"
)

// Tasks is the observer "tasks": the host's tasks, threads included, in the
// job's cgroup.
//
// Values in tasks: "tasks", its worst raised by the kernel's own pids.peak
// where there is one; and "pids_max_events", the forks that the host's cap
// refused, in counts. On cgroup version 1 the thread that starts the job's
// first process counts as one task until a few microseconds later.
type Tasks struct {
	host   Host
	prefix string
	spawn  Spawner
}

// NewTasks watches over h; prefix is the run's cgroup.
func NewTasks(h Host, prefix string, spawn Spawner) *Tasks {
	return &Tasks{host: h, prefix: prefix, spawn: spawn}
}

// Name is "tasks".
func (*Tasks) Name() string { return "tasks" }

// Control starts three sleepers in a throwaway group and wants their tasks
// counted exactly: as many as /proc/PID/task shows, which is another account.
func (t *Tasks) Control(ctx context.Context) Control {
	c := Control{
		Observer: t.Name(), Place: t.prefix,
		Effect: "three processes slept in a throwaway cgroup",
		Want:   "exactly the tasks that /proc shows of them",
	}
	counted, shown, err := t.sleepers(ctx, 3)
	if err != nil {
		return failed(c, err)
	}
	c.Want = fmt.Sprintf("exactly the %d tasks that /proc shows of them", shown)
	c.Seen = fmt.Sprintf("%d tasks", counted)
	c.Passed = counted == shown && shown >= 3
	if !c.Passed {
		c.Reason = "the cgroup's task count is not the tasks that were there: check that the pids controller is enabled below " + t.prefix
	}
	return c
}

// sleepers counts until both accounts agree and are at rest, or ctx ends: a
// child's own runtime may still be making its threads.
func (t *Tasks) sleepers(ctx context.Context, n int) (counted, shown int64, err error) {
	g, end, err := throwaway(ctx, t.host, t.prefix, t.Name(), cgroup.Limits{PIDs: 256})
	if err != nil {
		return 0, 0, err
	}
	defer end(&err)
	var pids []int
	for range n {
		child, err := t.spawn.Spawn(ctx, Child{Cgroup: g.Path(), Act: ActSleep})
		if err != nil {
			return 0, 0, err
		}
		defer reap(child)
		pids = append(pids, child.Pid)
	}
	until(ctx, func() bool {
		before, e := t.shown(pids)
		if counted, err = g.PIDs(); err == nil {
			err = e
		}
		if err != nil {
			return true
		}
		shown, err = t.shown(pids)
		return err != nil || before == shown && counted == shown
	})
	return counted, shown, err
}

func (t *Tasks) shown(pids []int) (total int64, err error) {
	for _, pid := range pids {
		tasks, err := os.ReadDir(filepath.Join(t.host.Proc, strconv.Itoa(pid), "task"))
		if err != nil {
			return 0, fmt.Errorf("count tasks of process %d: %w", pid, err)
		}
		total += int64(len(tasks))
	}
	return total, nil
}

// Watch arms the observer; see [Tasks] for the values.
func (t *Tasks) Watch(_ context.Context, s Subject) (Watch, error) {
	return watchGauges(t.host, t.Name(), s, []gauge{
		{name: "tasks", unit: "processes", read: (*cgroup.Group).PIDs, peak: (*cgroup.Group).PIDsPeak},
		{name: "pids_max_events", unit: "count", read: (*cgroup.Group).PIDsRefused},
	})
}
