package observers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tenwalls.dev/harness/internal/cgroup"
)

// Limits is the observer "limits": which limits the kernel holds in force at the
// job's cgroup, read back while the runtime is in it.
//
// Values: "memory" and "swap" (bytes, swap beyond memory) and "tasks"; the worst
// is the widest that was read, and NoLimit where there was none. And whom they
// hold: "inside", processes of the job that are in its group in every hierarchy
// that limits it, and "outside", those that are in it in one and not in another,
// the most at one look each. On version 1 a process can leave one hierarchy alone,
// and its limit with it. On a machine
// without swap space and without an account of it (version 1 without
// swapaccount=1) "swap" is 0: there is nothing to swap to.
//
// What it does not prove: that the kernel enforces them. The observers "memory",
// "oom" and "tasks" show that, of the walls that an attempt reaches.
type Limits struct {
	host   Host
	prefix string
}

// NoLimit is the reading where no limit is in force: the largest integer that
// every reader of JSON keeps (RFC 8259, section 6).
const NoLimit int64 = 1<<53 - 1

// NewLimits watches over h; prefix is the run's cgroup.
func NewLimits(h Host, prefix string) *Limits { return &Limits{host: h, prefix: prefix} }

// Name is "limits".
func (*Limits) Name() string { return "limits" }

// Control sets limits of odd sizes on a throwaway group, and none on another,
// and reads them back.
func (l *Limits) Control(ctx context.Context) Control {
	c := Control{
		Observer: l.Name(), Place: l.prefix, Effect: "a throwaway cgroup is limited to 12 MiB without swap and 7 tasks, another not at all",
		Want: "those, and none",
	}
	limited, err := l.read(ctx, cgroup.Limits{MemoryBytes: 12 << 20, PIDs: 7})
	if err != nil {
		return failed(c, err)
	}
	free, err := l.read(ctx, cgroup.Limits{SwapBytes: -1})
	if err != nil {
		return failed(c, err)
	}
	c.Seen = l.words(limited) + "; and " + l.words(free)
	c.Passed = limited["memory"] == 12<<20 && limited["swap"] == 0 && limited["tasks"] == 7 && free["memory"] == NoLimit && free["tasks"] == NoLimit
	if !c.Passed {
		c.Reason = "the limits were not read back as set: check that the memory and pids controllers are enabled below " + l.prefix
	}
	return c
}

// words tells the limits as read: "memory 12 MiB, swap 0, tasks 7".
func (l *Limits) words(read map[string]int64) string {
	var out []string
	for _, g := range l.gauges() {
		said := fmt.Sprint(read[g.name])
		switch n := read[g.name]; {
		case n == NoLimit:
			said = "without limit"
		case g.unit == "bytes" && n != 0 && n%(1<<20) == 0:
			said = fmt.Sprintf("%d MiB", n>>20)
		case g.unit == "bytes" && n != 0:
			said += " bytes"
		}
		out = append(out, g.name+" "+said)
	}
	return strings.Join(out, ", ")
}

func (l *Limits) read(ctx context.Context, set cgroup.Limits) (_ map[string]int64, err error) {
	g, end, err := throwaway(ctx, l.host, l.prefix, l.Name(), set)
	if err != nil {
		return nil, err
	}
	defer end(&err)
	out := map[string]int64{}
	for _, value := range l.gauges() {
		if out[value.name], err = value.read(g); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Watch arms the observer; see [Limits] for the values.
func (l *Limits) Watch(_ context.Context, s Subject) (Watch, error) {
	gauges, err := watchGauges(l.host, l.Name(), s, l.gauges())
	if err != nil {
		return nil, err
	}
	tree, err := OpenCgroups(l.host)
	if err != nil {
		return nil, err
	}
	return &limitsWatch{Watch: gauges, host: l.host, tree: tree, cgroup: s.Cgroup}, nil
}

// limitsWatch looks beside the numbers at whom they count for.
type limitsWatch struct {
	Watch
	host            Host
	tree            *Cgroups
	cgroup          string
	inside, outside int64
	found           string
}

// Sample reads the limits, and who is in the group.
func (w *limitsWatch) Sample() {
	w.Watch.Sample()
	pids, err := w.tree.Procs(w.cgroup)
	if err != nil {
		return // not there yet, or no more: nobody is inside then
	}
	var inside, outside int64
	for _, pid := range pids {
		groups, err := groupsOf(w.host, pid)
		if err != nil {
			continue
		}
		if where := astray(groups, w.cgroup, w.tree.Version()); where != "" {
			outside++
			w.found = fmt.Sprintf("process %d of the job is elsewhere: %s", pid, where)
			continue
		}
		inside++
	}
	w.inside, w.outside = max(w.inside, inside), max(w.outside, outside)
}

// Stored adds who was in the group to the numbers.
func (w *limitsWatch) Stored() Observation {
	o := w.Watch.Stored()
	o.Values["inside"] = Reading{Worst: w.inside, After: w.inside, Unit: "processes"}
	o.Values["outside"] = Reading{Worst: w.outside, After: w.outside, Unit: "processes"}
	if w.found != "" {
		o.Find(w.found)
	}
	return o
}

// limiting are the controllers of version 1 that hold a job.
var limiting = []string{"memory", "pids", "cpuacct"}

// astray returns the line of a /proc/PID/cgroup (cgroups(7)) by which a process is
// not in the group or below it in a hierarchy that limits the job; empty when it
// is in all of them.
func astray(groups, cgroup string, version int) string {
	for line := range strings.Lines(groups) {
		line = strings.TrimSuffix(line, "\n")
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		limits := version == 2 && parts[0] == "0" && parts[1] == ""
		if version == 1 {
			limits = slices.ContainsFunc(strings.Split(parts[1], ","), func(c string) bool { return slices.Contains(limiting, c) })
		}
		if limits && !pathWithin(parts[2], cgroup) {
			return line
		}
	}
	return ""
}

func (l *Limits) gauges() []gauge {
	finite := func(read func(*cgroup.Group) (int64, error)) func(*cgroup.Group) (int64, error) {
		return func(g *cgroup.Group) (int64, error) {
			n, err := read(g)
			return min(n, NoLimit), err
		}
	}
	return []gauge{
		{name: "memory", unit: "bytes", read: finite((*cgroup.Group).MemoryLimit)},
		{name: "swap", unit: "bytes", read: finite(l.swap)},
		{name: "tasks", unit: "tasks", read: finite((*cgroup.Group).PIDsLimit)},
	}
}

func (l *Limits) swap(g *cgroup.Group) (int64, error) {
	n, err := g.SwapLimit()
	if !errors.Is(err, ErrNotAccounted) {
		return n, err
	}
	space, e := swapSpace(l.host)
	if e != nil || space {
		return 0, errors.Join(err, e)
	}
	return 0, nil
}

// swapSpace tells whether the machine has any (proc_swaps(5): a heading, then
// one line a space).
func swapSpace(h Host) (bool, error) {
	data, err := os.ReadFile(filepath.Join(h.Proc, "swaps"))
	if err != nil {
		return false, fmt.Errorf("read swap spaces: %w", err)
	}
	return bytes.Contains(bytes.TrimSpace(data), []byte("\n")), nil
}
