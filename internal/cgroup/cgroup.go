// Package cgroup makes, fills, empties and removes one control group in either
// version of the kernel's interface, and reads what the kernel accounts to it.
//
// A [Group] is one path in every hierarchy that matters here: on version 2 the
// single tree, on version 1 (and on a hybrid machine, whose controllers sit in
// version 1) the trees of memory, pids, cpuacct, and freezer where it is there.
//
// What this package does not prove: that a process stays in its group. A
// process with enough privilege on the host can move itself out; whoever cares
// must look at /proc/PID/cgroup. Numbers are the kernel's own accounting, with
// its batching: a charge may show a few milliseconds late.
//
// Sources: Documentation/admin-guide/cgroup-v1/{cgroups,memory,pids,cpuacct,
// freezer-subsystem}.rst and Documentation/admin-guide/cgroup-v2.rst.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNotAccounted says that this kernel keeps no such account: the file is
// absent because the kernel is too old or was started without the account
// (swap: swapaccount=0, or a kernel without swap support).
var ErrNotAccounted = errors.New("not accounted by this kernel")

// Hierarchy is the mounted control group tree, or trees, of one machine.
type Hierarchy struct {
	version int
	trees   []tree
}

// tree is one mounted hierarchy with the controllers that we use in it.
type tree struct {
	root        string
	controllers []string
}

// Detect finds which version is in use under root, usually /sys/fs/cgroup, and
// where the controllers are. Version 2 is taken only when its root offers the
// memory and pids controllers; a hybrid machine is therefore version 1.
func Detect(root string) (*Hierarchy, error) {
	data, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err == nil {
		have := strings.Fields(string(data))
		for _, c := range []string{"memory", "pids"} {
			if !slices.Contains(have, c) {
				return nil, fmt.Errorf("detect cgroups: %s lacks %q: enable the controller in the parent's cgroup.subtree_control, or do not disable it on the kernel command line",
					filepath.Join(root, "cgroup.controllers"), c)
			}
		}
		return &Hierarchy{version: 2, trees: []tree{{root: root, controllers: []string{"memory", "pids"}}}}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("detect cgroups: %w", err)
	}
	return detectV1(root)
}

// detectV1 looks for root/<controller>, then for a folder that names several
// controllers, such as cpu,cpuacct.
func detectV1(root string) (*Hierarchy, error) {
	h := &Hierarchy{version: 1}
	for _, c := range []string{"memory", "pids", "cpuacct", "freezer"} {
		dir, err := controllerFolder(root, c)
		if errors.Is(err, fs.ErrNotExist) && c == "freezer" {
			continue // killing then loops instead of freezing first
		}
		if err != nil {
			return nil, fmt.Errorf("detect cgroups: controller %q: %w: mount it, for example mount -t cgroup -o %s cgroup %s", c, err, c, filepath.Join(root, c))
		}
		h.add(dir, c)
	}
	return h, nil
}

func (h *Hierarchy) add(dir, controller string) {
	for i, t := range h.trees {
		if t.root == dir {
			h.trees[i].controllers = append(t.controllers, controller)
			return
		}
	}
	h.trees = append(h.trees, tree{root: dir, controllers: []string{controller}})
}

// controllerFolder resolves links, so that cpu -> cpu,cpuacct is one tree.
func controllerFolder(root, controller string) (string, error) {
	names := []string{controller}
	entries, err := os.ReadDir(root)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if slices.Contains(strings.Split(e.Name(), ","), controller) {
			names = append(names, e.Name())
		}
	}
	for _, n := range names {
		dir := filepath.Join(root, n)
		// An unmounted folder has no cgroup.procs.
		if _, err = os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return filepath.EvalSymlinks(dir)
		}
	}
	return "", err
}

// Version is 1 or 2.
func (h *Hierarchy) Version() int { return h.version }

// Group is one path in every tree of the hierarchy. It holds no descriptors.
type Group struct {
	h    *Hierarchy
	path string
}

// Open names the group at p, an absolute, clean path below the hierarchy's
// root. It does not look whether the group is there: [Group.Kill] and
// [Group.Remove] of a group that is not there succeed.
func (h *Hierarchy) Open(p string) (*Group, error) {
	if !strings.HasPrefix(p, "/") || p == "/" || path.Clean(p) != p || strings.ContainsAny(p, "\x00\n") {
		return nil, fmt.Errorf("open cgroup %q: the path must be absolute, clean and below the root", p)
	}
	return &Group{h: h, path: p}, nil
}

// Path is the group's path below each hierarchy's root.
func (g *Group) Path() string { return g.path }

// dirs are the group's folders, one a tree.
func (g *Group) dirs() []string {
	out := make([]string, 0, len(g.h.trees))
	for _, t := range g.h.trees {
		out = append(out, filepath.Join(t.root, g.path))
	}
	return out
}

// file is the path of one of the controller's files in this group. It is empty
// when the controller is not mounted; on version 2 every file is in one tree.
func (g *Group) file(controller, name string) string {
	for _, t := range g.h.trees {
		if g.h.version == 2 || slices.Contains(t.controllers, controller) {
			return filepath.Join(t.root, g.path, name)
		}
	}
	return ""
}
