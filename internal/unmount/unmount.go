// Package unmount empties a folder of mounts and removes it, without ever
// reaching through a mount or a link into what is somebody else's.
//
// Use it for a folder of one's own, below which one mounted things oneself, and
// after what ran in it was ended. Do not use it to take a mount away from a
// process that still needs it: a mount in use is waited for and then told, never
// detached lazily (umount2(2), MNT_DETACH), since a detached one lives on unseen.
//
// What this package does not prove: that nothing is mounted there in another
// mount namespace, or that nobody mounts something after it returned. It reads
// /proc/self/mountinfo, which is the caller's own view.
package unmount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// askEvery is how often a mount that is in use is tried again: no event tells
// that the last open file of a mount was closed.
const askEvery = 5 * time.Millisecond

// Below unmounts everything mounted at or below dir, an absolute path, the
// latest first, until nothing is. Mounts that are in use, and mounts that appear
// meanwhile, are tried again until ctx ends; then the error names what is still
// mounted. It tries once also when ctx has ended already. A folder that is not
// there has no mounts.
func Below(ctx context.Context, dir string) error {
	dir, err := resolve(dir)
	if err != nil || dir == "" {
		return err
	}
	return below(ctx, dir)
}

// Remove is [Below] followed by the removal of dir and everything in it. A link
// is removed and not followed. A folder that is a mount point is not entered,
// also when it became one a moment ago (openat2(2), RESOLVE_NO_XDEV): it is
// unmounted first, and if it cannot be, what is mounted there stays as it is. A
// folder that is not there is removed already.
func Remove(ctx context.Context, dir string) error {
	return remove(ctx, dir, func() {})
}

// remove calls between after the mounts are gone, which is where another could
// appear.
func remove(ctx context.Context, dir string, between func()) error {
	dir, err := resolve(dir)
	if err != nil || dir == "" {
		return err
	}
	for {
		if err := below(ctx, dir); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
		between()
		err := removeTree(dir)
		switch {
		case err == nil:
			return nil
		case !again(err):
			return fmt.Errorf("remove %s: %w", dir, err)
		case !wait(ctx):
			return fmt.Errorf("remove %s: %w", dir, errors.Join(err, ctx.Err()))
		}
	}
}

// again tells the errors of something that appeared meanwhile: a mount, or a
// name in a folder that was empty.
func again(err error) bool {
	return errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY)
}

// wait lets some time pass, and reports whether there is any left.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(askEvery):
		return true
	}
}

// resolve returns dir as the kernel's list of mounts has it, without links on
// the way to it: else nothing would seem to be mounted in a folder that is
// reached through one. The last name is left as it is, since a link there is
// not ours to follow. It is empty when the way does not exist.
func resolve(dir string) (string, error) {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || dir == "/" {
		return "", fmt.Errorf("unmount below %q: the path must be absolute, clean and not the root", dir)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("unmount below %s: %w", dir, err)
	}
	return filepath.Join(parent, filepath.Base(dir)), nil
}

func below(ctx context.Context, dir string) error {
	for {
		mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
			return m.Mountpoint != dir && !strings.HasPrefix(m.Mountpoint, dir+"/"), false
		})
		if err != nil {
			return fmt.Errorf("list mounts below %s: %w", dir, err)
		}
		if len(mounts) == 0 {
			return nil
		}
		var errs []error
		for i := len(mounts) - 1; i >= 0; i-- {
			if err := unix.Unmount(mounts[i].Mountpoint, unix.UMOUNT_NOFOLLOW); err != nil {
				errs = append(errs, fmt.Errorf("unmount %s: %w", mounts[i].Mountpoint, err))
			}
		}
		// One that was covered by another is reached in the next round.
		if len(errs) == len(mounts) && !wait(ctx) || ctx.Err() != nil && len(errs) > 0 {
			return errors.Join(append(errs, ctx.Err())...)
		}
	}
}
