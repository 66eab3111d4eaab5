// Package durable is what every writer of files here does at the end: make a new
// name survive a power cut, and say what can be done when the file system said no.
//
// What this package does not prove: that the disk keeps what it says it has
// written.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// SyncFolder makes renames, new names and removals in dir survive a power cut
// (fsync(2)).
func SyncFolder(dir string) (err error) {
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

// Remedied adds what can be done about an error of the file system, and leaves
// every other one, and nil, as it is.
func Remedied(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: free some space or choose another folder", err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: choose a folder that can be written", err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: choose a folder, not a file", err)
	}
	return err
}
