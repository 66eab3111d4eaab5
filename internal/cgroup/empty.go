package cgroup

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// RemoveIfEmpty removes the group's own folder in every tree in which nothing
// is below it and no process in it, and leaves it where somebody uses it. It is
// for a parent that several share.
func (g *Group) RemoveIfEmpty() error {
	var errs []error
	for _, dir := range g.dirs() {
		err := unix.Rmdir(dir)
		if err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove cgroup %s: %w", g.path, err))
		}
	}
	return errors.Join(errs...)
}
