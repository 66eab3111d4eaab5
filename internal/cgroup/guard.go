package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Guard makes the group at path, and its missing parents, as the outer guard of
// what is made below it: whatever limits those groups have, or lack, all of them
// together stay within l. It is for a run in which a wall may be down, so that
// the machine outside is safe from it.
//
// The guard holds no process itself. MemoryBytes and PIDs have to be given, and
// SwapBytes must not be -1: what is not limited is not guarded. When the guard's
// memory is used up the kernel kills in the group below that uses most, and as
// ever that group's tasks alone: its OOM record names the guard as oom_memcg and
// the group of the victim as task_memcg, and [Group.OOMKills] counts at the
// latter (mm/oom_kill.c; cgroup-v2.rst, "memory.oom.group").
//
// The limits are read back, so that a guard which the kernel did not take as it
// was meant is an error; so is a group that already stands, as in
// [Hierarchy.Create]. What it does not prove: that whatever is to be guarded is
// made below it.
func (h *Hierarchy) Guard(path string, l Limits) (*Group, error) {
	if l.MemoryBytes <= 0 || l.PIDs <= 0 || l.SwapBytes < 0 {
		return nil, fmt.Errorf("guard cgroup %s: memory %d, swap %d, pids %d: a guard limits all three", path, l.MemoryBytes, l.SwapBytes, l.PIDs)
	}
	return h.create(path, func(g *Group) error {
		if err := g.limit(l); err != nil {
			return err
		}
		if err := g.handDown(); err != nil {
			return err
		}
		return g.inForce(l)
	})
}

// handDown makes the limits count for the groups below. On version 2 the
// controllers are enabled for them now, since without that the tasks below are
// the guard's own and no group of theirs is told apart in an account. On
// version 1 makeIn has set memory.use_hierarchy, and pids always counts so.
func (g *Group) handDown() error {
	if g.h.version == 1 {
		return nil
	}
	for _, t := range g.h.trees {
		if err := enable(filepath.Join(t.root, g.path), t.controllers); err != nil {
			return err
		}
	}
	return nil
}

// inForce compares the limits with what the kernel now says. It rounds memory
// down to whole pages, of 64 KiB at the most.
func (g *Group) inForce(l Limits) error {
	memory, err := g.MemoryLimit()
	if err == nil && (memory > l.MemoryBytes || memory <= l.MemoryBytes-64<<10) {
		err = fmt.Errorf("the memory limit in force is %d, not %d", memory, l.MemoryBytes)
	}
	pids, e := g.PIDsLimit()
	if e == nil && pids != l.PIDs {
		e = fmt.Errorf("the pids limit in force is %d, not %d", pids, l.PIDs)
	}
	swap, es := g.SwapLimit()
	switch {
	case errors.Is(es, ErrNotAccounted): // and so none is charged beside memory
		es = nil
	case es == nil && swap > l.SwapBytes+64<<10:
		es = fmt.Errorf("the swap limit in force is %d, not %d", swap, l.SwapBytes)
	}
	return errors.Join(err, e, es)
}
