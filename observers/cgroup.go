package observers

import (
	"fmt"
	"time"

	"tenwalls.dev/harness/internal/cgroup"
)

// ErrNotAccounted says that the kernel keeps no such account for a cgroup.
var ErrNotAccounted = cgroup.ErrNotAccounted

// Unlimited is what limit readings return where no limit is in force.
const Unlimited = cgroup.Unlimited

// Cgroups reads what the kernel accounts to cgroups and which limits are in
// force there, in either version. A path is a job's, below each hierarchy's
// root, with a leading slash; each reading counts the groups below it as well.
// Numbers are bytes, tasks or events. An error names the file; it wraps
// [ErrNotAccounted] where the kernel keeps no such account.
//
// Sources: Documentation/admin-guide/cgroup-v1/{memory,pids,cpuacct}.rst and
// Documentation/admin-guide/cgroup-v2.rst.
type Cgroups struct {
	tree *cgroup.Hierarchy
}

// OpenCgroups detects the version in use below h.Cgroup: 2 when the root there
// has cgroup.controllers with memory and pids, else 1, by one folder a
// controller. A hybrid machine, whose controllers are in version 1, is 1.
func OpenCgroups(h Host) (*Cgroups, error) {
	tree, err := cgroup.Detect(h.Cgroup)
	if err != nil {
		return nil, fmt.Errorf("open cgroups: %w", err)
	}
	return &Cgroups{tree: tree}, nil
}

// Version is 1 or 2.
func (c *Cgroups) Version() int { return c.tree.Version() }

// ProcessorTime is the processor time spent, in resolution of ns (1) or us (2).
func (c *Cgroups) ProcessorTime(path string) (time.Duration, error) {
	return of(c, path, (*cgroup.Group).ProcessorTime)
}

// MemoryUsage is the memory charged now.
func (c *Cgroups) MemoryUsage(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).MemoryUsage)
}

// MemoryPeak is the most memory ever charged.
func (c *Cgroups) MemoryPeak(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).MemoryPeak)
}

// MemoryLimit is the limit in force.
func (c *Cgroups) MemoryLimit(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).MemoryLimit)
}

// SwapUsage is the swap charged now.
func (c *Cgroups) SwapUsage(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).SwapUsage)
}

// SwapPeak is the most swap ever charged; version 1 does not account it.
func (c *Cgroups) SwapPeak(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).SwapPeak)
}

// SwapLimit is the swap allowed beyond memory.
func (c *Cgroups) SwapLimit(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).SwapLimit)
}

// OOMKills counts processes killed for want of memory.
func (c *Cgroups) OOMKills(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).OOMKills)
}

// PIDs is the number of tasks now, threads and zombies included.
func (c *Cgroups) PIDs(path string) (int64, error) { return of(c, path, (*cgroup.Group).PIDs) }

// PIDsPeak is the largest number of tasks ever.
func (c *Cgroups) PIDsPeak(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).PIDsPeak)
}

// PIDsRefused counts the forks that a limit on tasks refused.
func (c *Cgroups) PIDsRefused(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).PIDsRefused)
}

// PIDsLimit is the limit on tasks in force.
func (c *Cgroups) PIDsLimit(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).PIDsLimit)
}

// ProcessorLimit is the share of processors allowed in processor-ns a second
// of wall clock (cpu.max, cpu.cfs_quota_us), [Unlimited] without one.
func (c *Cgroups) ProcessorLimit(path string) (int64, error) {
	return of(c, path, (*cgroup.Group).ProcessorLimit)
}

// Procs lists the processes now in the group and below it, sorted.
func (c *Cgroups) Procs(path string) ([]int, error) { return of(c, path, (*cgroup.Group).Procs) }

func of[T any](c *Cgroups, path string, read func(*cgroup.Group) (T, error)) (T, error) {
	g, err := c.tree.Open(path)
	if err != nil {
		var none T
		return none, err
	}
	return read(g)
}
