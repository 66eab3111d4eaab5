package observers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	controlSize  = 8 << 20
	controlSlack = 1 << 20 // the file's own metadata, and what others write or free in the same moment
	controlTries = 5       // other programs share the file systems: a quiet moment may take a few
)

// Control writes and holds 8 MiB in a file without a name on each real file
// system, and passes when each one's free space drops by that much and the scan
// of open files counts that much for exactly that file. A file system that is
// read-only as a whole can't be filled and needs no control.
func (o *Space) Control(ctx context.Context) Control {
	c := Control{
		Observer: o.Name(),
		Effect:   "the harness writes and holds 8 MiB in a file without a name on each real file system",
		Want:     fmt.Sprintf("free space down by %d bytes and that file's blocks among those held", controlSize),
	}
	systems, err := realFilesystems(o.host)
	var seen []string
	var missed []error
	if err != nil {
		missed = append(missed, err)
	} else if len(systems) == 0 {
		missed = append(missed, errors.New("no real file system in the mount table"))
	}
	for _, system := range systems {
		if system.readOnly {
			seen = append(seen, system.mountpoint+": read-only, needs none")
			continue
		}
		folder := o.folderOn(system)
		var drop, held int64
		for range controlTries {
			if err = ctx.Err(); err != nil {
				break
			}
			drop, held, err = o.fillAndLook(folder)
			if err != nil || (near(drop) && near(held)) {
				break
			}
		}
		seen = append(seen, fmt.Sprintf("%s: free down by %d, held %d", system.mountpoint, drop, held))
		switch {
		case err != nil:
			missed = append(missed, fmt.Errorf("%s: %w", system.mountpoint, err))
		case !near(drop) || !near(held):
			missed = append(missed, fmt.Errorf("%s: not seen as caused", system.mountpoint))
		}
	}
	c.Seen = strings.Join(seen, "; ")
	c.Passed = len(missed) == 0
	if err := errors.Join(missed...); err != nil {
		c.Reason = strings.ReplaceAll(err.Error(), "\n", "; ") + " (name a writable folder on it)"
	}
	return c
}

func near(bytes int64) bool {
	return bytes >= controlSize-controlSlack && bytes <= controlSize+controlSlack
}

// folderOn returns the first of the caller's folders on a file system.
func (o *Space) folderOn(system filesystem) string {
	host, err := readHostMounts(o.host, nil)
	if err != nil {
		return system.mountpoint
	}
	for _, folder := range o.folders {
		real, err := filepath.EvalSymlinks(folder)
		if err != nil {
			continue
		}
		if s, ok := host.find(real); ok && s.major == system.dev.major && s.minor == system.dev.minor {
			return real
		}
	}
	return system.mountpoint
}

// fillAndLook causes the effect in a folder and returns the drop in free space
// and the blocks held, as the observer sees them.
func (o *Space) fillAndLook(folder string) (drop, held int64, err error) {
	f, err := unnamedFile(folder)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	before, err := freeBytes(folder)
	if err != nil {
		return 0, 0, err
	}
	// Blocks given by fallocate leave the free space at once. Where the file
	// system knows no fallocate, written data must be forced out to be counted.
	err = unix.Fallocate(int(f.Fd()), 0, 0, controlSize)
	if errors.Is(err, unix.EOPNOTSUPP) {
		if _, err = f.Write(make([]byte, controlSize)); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("fill control file: %w", err)
	}
	after, err := freeBytes(folder)
	if err != nil {
		return 0, 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, 0, fmt.Errorf("stat control file: %w", err)
	}
	blocks, err := heldBlocks(o.host, []int{os.Getpid()})
	if err != nil {
		return 0, 0, err
	}
	return before - after, blocks[inode{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino}], nil
}

// unnamedFile makes a file that vanishes with the harness: O_TMPFILE, or where
// the file system has no such thing, a file whose name is removed at once.
func unnamedFile(folder string) (*os.File, error) {
	f, err := os.OpenFile(folder, os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err == nil {
		return f, nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) {
		return nil, fmt.Errorf("make control file: %w", err)
	}
	f, err = os.CreateTemp(folder, ".tenwalls-space-")
	if err != nil {
		return nil, fmt.Errorf("make control file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("unname control file: %w", err), f.Close())
	}
	return f, nil
}
