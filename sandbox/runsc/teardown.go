package runsc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/internal/unmount"
)

// teardown removes everything that the job made on the host, and checks it.
func (x *execution) teardown() error {
	return removeTraces(x.r.within, x.r.cgroups, x.rec.Cgroup, x.dirs.base, x.probe)
}

// removeTraces ends what runs in the cgroup, removes it, unmounts what is
// mounted in the job's folder (its scratch, and what the runtime mounted in its
// own state folder) and removes the folder. It goes on after an error, so that
// as little as possible is left, and what is already gone is no error: it runs
// after a crash as well, when anything may be half made. A probe may keep some
// of it.
func removeTraces(within time.Duration, h *cgroup.Hierarchy, group, dir string, p Probe) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	g, err := h.Open(group)
	if err != nil {
		return fmt.Errorf("tear down: %w", err)
	}
	var errs []error
	step := func(kept Kept, do func() error) {
		if !p.keeps(kept) {
			errs = append(errs, do())
		}
	}
	step(KeepProcesses, func() error { return g.Kill(ctx) })
	// Scratch goes before the cgroup: its pages are charged to it.
	step(KeepScratch, func() error { return unmount.Below(ctx, dir) })
	step(KeepCgroup, func() error { return g.Remove(ctx) })
	step(KeepFolder, func() error { return unmount.Remove(ctx, dir) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("tear down: %w", err)
	}
	return nil
}

// sweep removes folders of jobs that no record knows of: the record is written
// first, so these are the remains of a state file that was moved away.
func sweep(ctx context.Context, jobs string, known func(name string) bool) error {
	entries, err := os.ReadDir(jobs)
	if err != nil {
		return fmt.Errorf("sweep job folders: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !known(e.Name()) {
			errs = append(errs, unmount.Remove(ctx, filepath.Join(jobs, e.Name())))
		}
	}
	return errors.Join(errs...)
}
