package attest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// syncFolder makes a new name in dir survive a power cut (fsync(2)).
func syncFolder(dir string) (err error) {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

// remedied adds what can be done about an error of the file system.
func remedied(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: free some space or choose another folder", err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: choose a folder that can be written", err)
	}
	return err
}

// maxSaid bounds what others wrote where an error repeats it, in bytes.
const maxSaid = 128

// said is what others wrote, bounded; an error quotes it (%q), which escapes
// whatever a terminal would take for more than text.
func said(s string) string {
	if len(s) <= maxSaid {
		return s
	}
	return strings.ToValidUTF8(s[:maxSaid], "") + "..."
}
