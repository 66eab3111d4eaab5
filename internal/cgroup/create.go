package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Limits are the caps of one group.
type Limits struct {
	MemoryBytes int64 // 0 is unlimited
	// SwapBytes is swap beyond memory: -1 sets no limit, 0 allows none. It is
	// left alone where the kernel keeps no swap account (see [Group.SwapLimit])
	// and, on version 1, where memory is unlimited: there the kernel only knows
	// a limit of both together.
	SwapBytes int64
	PIDs      int64 // tasks, threads included; 0 is unlimited. Version 1 needs 2 or more: see [Group.Start]
}

// Create makes the group and its missing parents and sets its limits. A group
// that already stands is an error wrapping [fs.ErrExist], since its counters
// are another job's. What a failed call made is removed again.
func (h *Hierarchy) Create(path string, l Limits) (*Group, error) {
	return h.create(path, func(g *Group) error { return g.limitJob(l) })
}

// create makes the group and lets finish set it up.
func (h *Hierarchy) create(path string, finish func(*Group) error) (_ *Group, err error) {
	g, err := h.Open(path)
	if err != nil {
		return nil, err
	}
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for _, dir := range slices.Backward(made) {
			// Another job may stand below a parent by now: then it stays.
			if e := os.Remove(dir); e != nil && !errors.Is(e, fs.ErrNotExist) && !errors.Is(e, syscall.EBUSY) && !errors.Is(e, syscall.ENOTEMPTY) {
				err = errors.Join(err, fmt.Errorf("undo create cgroup %s: %w", path, e))
			}
		}
	}()
	for _, t := range h.trees {
		m, e := h.makeIn(t, path)
		made = append(made, m...)
		if e != nil {
			return nil, fmt.Errorf("create cgroup %s: %w", path, e)
		}
	}
	if e := finish(g); e != nil {
		return nil, fmt.Errorf("create cgroup %s: %w", path, e)
	}
	return g, nil
}

// makeIn makes path in one tree and returns the folders that it made, parents
// first, also beside an error.
func (h *Hierarchy) makeIn(t tree, path string) (made []string, err error) {
	dir := t.root
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		if h.version == 2 {
			if err := enable(dir, t.controllers); err != nil {
				return made, err
			}
		}
		dir = filepath.Join(dir, part)
		err := os.Mkdir(dir, 0o755)
		switch {
		case err == nil:
			made = append(made, dir)
		case errors.Is(err, fs.ErrExist) && i < len(parts)-1:
		default:
			return made, explain(err)
		}
		if slices.Contains(t.controllers, "memory") && h.version == 1 {
			if err := hierarchical(dir); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

// hierarchical makes a version 1 memory group count its children as well,
// which kernels before 5.11 do only when asked to.
func hierarchical(dir string) error {
	name := filepath.Join(dir, "memory.use_hierarchy")
	v, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(v)) == "1" {
		return nil
	}
	return errors.Join(err, put(name, "1"))
}

// enable hands the controllers down from dir to its children, when they are
// not handed down already (cgroup-v2.rst, "Enabling and Disabling").
func enable(dir string, controllers []string) error {
	control := filepath.Join(dir, "cgroup.subtree_control")
	data, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	on := strings.Fields(string(data))
	var missing []string
	for _, c := range controllers {
		if !slices.Contains(on, c) {
			missing = append(missing, "+"+c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err = put(control, strings.Join(missing, " "))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("enable %s: %w: %s holds processes itself, and a group may hold either processes or controlled children: choose another cgroup parent or move the processes into a child",
			strings.Join(missing, " "), err, dir)
	case errors.Is(err, syscall.EOPNOTSUPP):
		return fmt.Errorf("enable %s: %w: %s is threaded: choose a cgroup parent of type domain", strings.Join(missing, " "), err, dir)
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("enable %s: %w: %s was not given these controllers: enable them in its parents, or delegate them (systemd: Delegate=yes)", strings.Join(missing, " "), err, dir)
	}
	return fmt.Errorf("enable %s: %w", strings.Join(missing, " "), err)
}

func (g *Group) limit(l Limits) error {
	if g.h.version == 2 {
		return g.limitV2(l)
	}
	if l.MemoryBytes > 0 {
		if err := put(g.file("memory", "memory.limit_in_bytes"), strconv.FormatInt(l.MemoryBytes, 10)); err != nil {
			return err
		}
		// memsw is memory and swap together and must not be below memory.
		if l.SwapBytes >= 0 {
			if err := putIfThere(g.file("memory", "memory.memsw.limit_in_bytes"), strconv.FormatInt(l.MemoryBytes+l.SwapBytes, 10)); err != nil {
				return err
			}
		}
	}
	if l.PIDs > 0 {
		return put(g.file("pids", "pids.max"), strconv.FormatInt(l.PIDs, 10))
	}
	return nil
}

func (g *Group) limitV2(l Limits) error {
	if l.MemoryBytes > 0 {
		if err := put(g.file("memory", "memory.max"), strconv.FormatInt(l.MemoryBytes, 10)); err != nil {
			return err
		}
	}
	if l.SwapBytes >= 0 {
		if err := putIfThere(g.file("memory", "memory.swap.max"), strconv.FormatInt(l.SwapBytes, 10)); err != nil {
			return err
		}
	}
	if l.PIDs > 0 {
		return put(g.file("pids", "pids.max"), strconv.FormatInt(l.PIDs, 10))
	}
	return nil
}

// limitJob is limit for a group that is one thing: when the kernel kills one of
// its tasks for want of memory, half a sandbox must not survive. Version 1 knows
// no such setting.
func (g *Group) limitJob(l Limits) error {
	if err := g.limit(l); err != nil || g.h.version == 1 {
		return err
	}
	return putIfThere(g.file("memory", "memory.oom.group"), "1")
}

// put writes one value in one write, as the kernel wants it, and makes nothing:
// a control file that is absent is an error.
func put(name, value string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return explain(err)
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("set %q: %w", value, explain(err))
	}
	return nil
}

func putIfThere(name, value string) error {
	if err := put(name, value); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// explain adds the remedy to an error that already names the file.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: the cgroup file system is mounted read-only: remount it read-write, or run outside the container", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: run as root, or have the subtree delegated", err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: an earlier job left it: kill and remove it first", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the controller is not enabled here, or the group is gone", err)
	}
	return err
}
