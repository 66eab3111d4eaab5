package observers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// Watch arms the observer for one job. The values are counts that only grow, so
// Before is 0 and Worst and After are the totals:
//
//   - "opens" and "reads": by processes in the job's cgroup or below it,
//   - "other": opens by everybody else, the harness and other jobs included,
//   - "unattributed": reads by a process that had ended before it could be
//     looked up and was in no sample; each is in Found as well, and so are its
//     opens.
func (c *Canary) Watch(_ context.Context, s Subject) (Watch, error) {
	if filepath.Clean("/"+s.Cgroup) == "/" {
		return nil, errors.New("watch canaries: the job has no cgroup of its own")
	}
	c.drain() // what happened before is not this job's
	w := &canaryWatch{canary: c, subject: s, pids: map[int]bool{}}
	w.obs = Observation{Observer: c.Name(), Place: s.Place, Values: map[string]Reading{}}
	for _, name := range []string{"opens", "reads", "other", "unattributed"} {
		w.add(name, 0)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[w] = true
	return w, nil
}

// canaryWatch is guarded by its Canary's mutex.
type canaryWatch struct {
	canary  *Canary
	subject Subject
	pids    map[int]bool // every process seen in the job's cgroup
	obs     Observation
}

// Sample notes the job's processes, so that one that ends right after it opened
// a canary is still known by its number.
func (w *canaryWatch) Sample() {
	pids, _ := jobPIDs(w.canary.host, w.subject.Cgroup) // no cgroup yet: nobody to note
	w.canary.mu.Lock()
	defer w.canary.mu.Unlock()
	w.obs.Samples++
	for _, pid := range pids {
		w.pids[pid] = true
	}
}

func (w *canaryWatch) event(pid int, file string, seen accesses, groups string, alive bool) {
	switch {
	case inCgroup(groups, w.subject.Cgroup), !alive && w.pids[pid]:
		w.add("opens", seen.opens)
		w.add("reads", seen.reads)
		w.obs.Find(fmt.Sprintf("process %d of the job: %d opens, %d reads of %s", pid, seen.opens, seen.reads, file))
	case alive:
		w.add("other", seen.opens)
	default:
		w.add("unattributed", seen.reads) // an open alone is what a refused attempt looks like
		w.obs.Find(fmt.Sprintf("process %d, ended and unknown: %d opens, %d reads of %s", pid, seen.opens, seen.reads, file))
	}
}

func (w *canaryWatch) add(name string, n int64) {
	total := w.obs.Values[name].Worst + n
	w.obs.Values[name] = Reading{Worst: total, After: total, Unit: "count"}
}

func (w *canaryWatch) Ended() { w.canary.drain() }

func (w *canaryWatch) Stored() Observation {
	w.canary.drain()
	w.canary.mu.Lock()
	defer w.canary.mu.Unlock()
	delete(w.canary.watches, w)
	if w.canary.lost != nil {
		w.obs.Lost = w.canary.lost.Error()
	}
	return w.obs
}
