package suites

import (
	"errors"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/observers"
)

// inGroups reads the limits that hold a process: those of the cgroup in which it
// really is, as /proc/PID/cgroup tells, and of every one above it. What holds is
// the tightest (cgroup-v2.rst, "Hierarchical"; memory.rst of version 1, section
// 6). job is where the runner says that it is.
func inGroups(seen map[string]string, h observers.Host, pid int, job string) {
	at, err := membership(filepath.Join(h.Proc, strconv.Itoa(pid), "cgroup"))
	tree, e := cgroup.Detect(h.Cgroup)
	if err := errors.Join(err, e); err != nil {
		seen["cgroup: held by"] = "unread: " + unplaced(err)
		return
	}
	where := func(controller string) string {
		if tree.Version() == 1 {
			return at[controller] // empty where it is not mounted
		}
		return at[""]
	}
	for _, l := range []struct {
		name, controller string
		read             func(*cgroup.Group) (int64, error)
	}{
		{"memory limit", "memory", (*cgroup.Group).MemoryLimit},
		{"swap limit", "memory", (*cgroup.Group).SwapLimit},
		{"task limit", "pids", (*cgroup.Group).PIDsLimit},
	} {
		seen["cgroup: "+l.name] = tightest(where(l.controller), func(p string) (int64, error) {
			g, err := tree.Open(p)
			if err != nil {
				return 0, err
			}
			return l.read(g)
		})
	}
	// The groups of package cgroup do not have this controller.
	seen["cgroup: processor limit"] = tightest(where("cpu"), func(p string) (int64, error) {
		if tree.Version() == 1 {
			return quotaV1(filepath.Join(h.Cgroup, "cpu", p))
		}
		return quotaV2(filepath.Join(h.Cgroup, p))
	})
	held := map[string]bool{}
	var words []string
	for _, c := range []string{"memory", "pids"} {
		if w := placed(where(c), job); !held[w] {
			held[w] = true
			words = append(words, w)
		}
	}
	seen["cgroup: held by"] = strings.Join(words, " and ")
}

// membership reads lines of id:controllers:path (cgroups(7)), by controller;
// version 2's path stands under "".
func membership(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			return nil, errors.New("no line of the form id:controllers:path")
		}
		for _, c := range strings.Split(parts[1], ",") {
			out[c] = parts[2]
		}
	}
	return out, nil
}

// placed says where a path is, in words that are the same in every run.
func placed(p, job string) string {
	switch {
	case p == job:
		return "the job's cgroup"
	case strings.HasPrefix(p, job+"/"):
		return "a cgroup below the job's"
	case strings.HasPrefix(job, p+"/") || p == "/":
		return "a cgroup above the job's"
	}
	return "another cgroup than the job's"
}

// tightest is the smallest of what read finds at p and above it; the root has no
// limit.
func tightest(p string, read func(string) (int64, error)) string {
	least, found := int64(math.MaxInt64), p == "/"
	for ; p != "/" && p != ""; p = path.Dir(p) {
		n, err := read(p)
		switch {
		case errors.Is(err, cgroup.ErrNotAccounted) || errors.Is(err, os.ErrNotExist):
			continue // by this kernel, or at this group
		case err != nil:
			return "unread: " + unplaced(err)
		}
		least, found = min(least, n), true
	}
	if !found {
		return "not accounted by this kernel"
	}
	return text(least)
}

// quotaV1 is the share of processors in thousandths of one
// (sched-bwc.rst): cpu.cfs_quota_us over cpu.cfs_period_us.
func quotaV1(dir string) (int64, error) {
	quota, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	period, e := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	if err := errors.Join(err, e); err != nil {
		return 0, err
	}
	return thousandths(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

// quotaV2 is the same of cpu.max (cgroup-v2.rst).
func quotaV2(dir string) (int64, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	if err != nil {
		return 0, err
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return thousandths(quota, period)
}

func thousandths(quota, period string) (int64, error) {
	if quota == "max" || quota == "-1" {
		return cgroup.Unlimited, nil
	}
	q, err := strconv.ParseInt(quota, 10, 64)
	p, e := strconv.ParseInt(period, 10, 64)
	if err := errors.Join(err, e); err != nil || p <= 0 {
		return 0, errors.Join(errors.New("no quota over a period"), err)
	}
	return q * 1000 / p, nil
}
