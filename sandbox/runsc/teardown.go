package runsc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/cgroup"
)

// teardown removes everything that the job made on the host, and checks it.
func (x *execution) teardown() error {
	return removeTraces(x.r.within, x.r.cgroups, x.rec.Cgroup, x.dirs.base)
}

// removeTraces ends what runs in the cgroup, removes it, unmounts what is
// mounted in the job's folder (its scratch, and what the runtime mounted in its
// own state folder) and removes the folder. It goes on after an error, so that
// as little as possible is left, and what is already gone is no error: it runs
// after a crash as well, when anything may be half made.
func removeTraces(within time.Duration, h *cgroup.Hierarchy, group, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	g, err := h.Open(group)
	if err != nil {
		return fmt.Errorf("tear down: %w", err)
	}
	var errs []error
	if err := g.Kill(ctx); err != nil {
		errs = append(errs, err)
	}
	// Scratch goes before the cgroup: its pages are charged to it.
	if err := unmountBelow(dir); err != nil {
		errs = append(errs, err)
	}
	if err := g.Remove(ctx); err != nil {
		errs = append(errs, err)
	}
	if err := removeFolder(dir); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("tear down: %w", err)
	}
	return nil
}

// unmountBelow unmounts everything mounted at or below dir, the latest first.
func unmountBelow(dir string) error {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return m.Mountpoint != dir && !strings.HasPrefix(m.Mountpoint, dir+"/"), false
	})
	if err != nil {
		return fmt.Errorf("list mounts below %s: %w", dir, err)
	}
	var errs []error
	for i := len(mounts) - 1; i >= 0; i-- {
		if err := unix.Unmount(mounts[i].Mountpoint, unix.UMOUNT_NOFOLLOW); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", mounts[i].Mountpoint, err))
		}
	}
	return errors.Join(errs...)
}

// removeFolder removes the job's folder, but never what is still mounted in
// it: a bind mount that could not be unmounted leads to somebody else's files.
func removeFolder(dir string) error {
	left, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, dir+"/"), false
	})
	if err != nil {
		return fmt.Errorf("list mounts below %s: %w", dir, err)
	}
	if len(left) > 0 {
		return fmt.Errorf("remove %s: %s is still mounted", dir, left[0].Mountpoint)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove job folder: %w", err)
	}
	return nil
}

// sweep removes folders of jobs that no record knows of: the record is written
// first, so these are the remains of a state file that was moved away.
func sweep(jobs string, known func(name string) bool) error {
	entries, err := os.ReadDir(jobs)
	if err != nil {
		return fmt.Errorf("sweep job folders: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if known(e.Name()) {
			continue
		}
		dir := filepath.Join(jobs, e.Name())
		errs = append(errs, unmountBelow(dir), removeFolder(dir))
	}
	return errors.Join(errs...)
}
