package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Unlimited is what the limit readings return where no limit is in force.
const Unlimited int64 = math.MaxInt64

// unlimitedV1 is the largest number of pages in bytes: version 1 shows it, cut
// to the page size, where no memory limit is set (memory.rst, section 3).
const unlimitedV1 = math.MaxInt64 / 65536 * 65536

// ProcessorTime is the processor time of all tasks that ever were in the group
// or below it (cpuacct.usage in ns; cpu.stat usage_usec in us).
func (g *Group) ProcessorTime() (time.Duration, error) {
	if g.h.version == 1 {
		n, err := number(g.file("cpuacct", "cpuacct.usage"))
		return time.Duration(n), err
	}
	n, err := keyed(g.file("cpu", "cpu.stat"), "usage_usec")
	return time.Duration(n) * time.Microsecond, err
}

// ProcessorLimit is the share of processors allowed, in processor-ns a second
// of wall clock, or [Unlimited]: cpu.max, or cpu.cfs_quota_us over
// cpu.cfs_period_us. [ErrNotAccounted] where the cpu controller is not in the
// same tree as the accounts, since this package makes no group there.
func (g *Group) ProcessorLimit() (int64, error) {
	if g.h.version == 1 {
		quota, err := number(g.file("cpuacct", "cpu.cfs_quota_us"))
		if err != nil {
			return 0, err
		}
		period, err := number(g.file("cpuacct", "cpu.cfs_period_us"))
		return share(quota, period), err
	}
	name := g.file("cpu", "cpu.max")
	data, err := read(name)
	if err != nil {
		return 0, err
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	if quota == "max" {
		return Unlimited, nil
	}
	q, err := strconv.ParseInt(quota, 10, 64)
	p, e := strconv.ParseInt(period, 10, 64)
	if err := errors.Join(err, e); err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return share(q, p), nil
}

func share(quota, period int64) int64 {
	if quota < 0 || period <= 0 {
		return Unlimited
	}
	return quota * int64(time.Second) / period
}

// MemoryUsage is the memory charged now, page cache and tmpfs included, bytes.
func (g *Group) MemoryUsage() (int64, error) {
	return g.either("memory.usage_in_bytes", "memory.current")
}

// MemoryPeak is the most memory ever charged, bytes. Version 2 has it since
// Linux 5.19; before, the error is [ErrNotAccounted]. It may stand some pages
// above the limit: the kernel charges by force what cannot fail or what a dying
// task needs (mm/memcontrol.c, try_charge; one page was seen).
func (g *Group) MemoryPeak() (int64, error) {
	return g.either("memory.max_usage_in_bytes", "memory.peak")
}

// MemoryLimit is the limit in force at this group, bytes, or [Unlimited].
func (g *Group) MemoryLimit() (int64, error) {
	return g.either("memory.limit_in_bytes", "memory.max")
}

func (g *Group) either(v1, v2 string) (int64, error) {
	if g.h.version == 1 {
		return number(g.file("memory", v1))
	}
	return number(g.file("memory", v2))
}

// SwapUsage is the swap charged now, bytes: memory.swap.current, or total_swap
// in version 1's memory.stat. [ErrNotAccounted] without swap accounting. The
// difference of the memsw and memory counters is not taken: they are two reads,
// and memory freed between them would look like swap.
func (g *Group) SwapUsage() (int64, error) {
	if g.h.version == 2 {
		return number(g.file("memory", "memory.swap.current"))
	}
	// Some kernels keep the line at 0 without the account; memsw tells.
	if _, err := read(g.file("memory", "memory.memsw.usage_in_bytes")); err != nil {
		return 0, err
	}
	return keyed(g.file("memory", "memory.stat"), "total_swap")
}

// SwapPeak is the most swap ever charged, bytes: memory.swap.peak, since Linux
// 6.5. [ErrNotAccounted] before, and on version 1, which keeps the peak of
// memory and swap together only.
func (g *Group) SwapPeak() (int64, error) {
	if g.h.version == 2 {
		return number(g.file("memory", "memory.swap.peak"))
	}
	return 0, fmt.Errorf("read cgroup %s: peak of swap alone: %w", g.path, ErrNotAccounted)
}

// SwapLimit is the swap allowed beyond memory, bytes, or [Unlimited].
func (g *Group) SwapLimit() (int64, error) {
	if g.h.version == 2 {
		return number(g.file("memory", "memory.swap.max"))
	}
	b, err := number(g.file("memory", "memory.memsw.limit_in_bytes"))
	if err != nil || b == Unlimited {
		return b, err
	}
	m, err := g.MemoryLimit()
	return max(b-m, 0), err
}

// OOMKills counts the processes that the kernel killed for want of memory in
// the group and below it. Version 1 counts each group for itself, so that the
// sum is taken; a group removed meanwhile takes its count along. On version 2
// the first victim counts twice when it has not ended before the rest of its
// group is killed (memory.oom.group; mm/oom_kill.c, oom_kill_process): whether
// the count is zero is certain, how many there were is not.
func (g *Group) OOMKills() (int64, error) {
	if g.h.version == 2 {
		return keyed(g.file("memory", "memory.events"), "oom_kill")
	}
	return sum(g.file("memory", ""), "memory.oom_control", "oom_kill")
}

// PIDs is the number of tasks in the group and below it, threads included;
// zombies count until they are reaped (pids.rst).
func (g *Group) PIDs() (int64, error) { return number(g.file("pids", "pids.current")) }

// PIDsPeak is the largest number of tasks ever (Linux 6.1); [ErrNotAccounted]
// before. A fork that a group above refused counts in it: 9 were seen in a
// child of a group of 8.
func (g *Group) PIDsPeak() (int64, error) { return number(g.file("pids", "pids.peak")) }

// PIDsLimit is pids.max or [Unlimited].
func (g *Group) PIDsLimit() (int64, error) { return number(g.file("pids", "pids.max")) }

// PIDsRefused counts the forks that a pids limit refused (pids.events max).
// Only kernels with pids.events.local (6.11) sum it up on version 2; elsewhere
// each group counts its own, and the sum is taken here.
func (g *Group) PIDsRefused() (int64, error) {
	if g.h.version == 2 {
		if _, err := os.Stat(g.file("pids", "pids.events.local")); err == nil {
			return keyed(g.file("pids", "pids.events"), "max")
		}
	}
	return sum(g.file("pids", ""), "pids.events", "max")
}

// number reads a file with one number, or the word max.
func number(name string) (int64, error) {
	data, err := read(name)
	if err != nil {
		return 0, err
	}
	s := string(bytes.TrimSpace(data))
	if s == "max" {
		return Unlimited, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	if n >= unlimitedV1 {
		n = Unlimited
	}
	return n, nil
}

// keyed reads the number beside key in a file of "key number" lines.
func keyed(name, key string) (int64, error) {
	data, err := read(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if k, v, _ := strings.Cut(strings.TrimSpace(line), " "); k == key {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read %s: %s: %w", name, key, err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("read %s: no line %q: %w", name, key, ErrNotAccounted)
}

func sum(dir, name, key string) (total int64, err error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, fmt.Errorf("read cgroup: %w", err)
	}
	err = walk(dir, func(d string) error {
		n, err := keyed(filepath.Join(d, name), key)
		if _, e := os.Stat(d); gone(e) {
			return nil // the group went while we read
		}
		total += n
		return err
	})
	return total, err
}

// read tells an account that the kernel does not keep from a group that is gone.
func read(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Stat(filepath.Dir(name)); e == nil {
			return nil, fmt.Errorf("%w: %w", err, ErrNotAccounted)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read cgroup: %w", err)
	}
	return data, nil
}
