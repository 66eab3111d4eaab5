// Package bounded reads files that somebody else may have put there.
//
// What this package does not prove: that the file is the same as a moment ago,
// or who wrote it.
package bounded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Read reads a regular file of at most limit bytes. What is none, such as
// a named pipe or a device, is refused and never waited for (open(2), O_NONBLOCK).
func Read(path string, limit int64) (data []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", path, limit)
	}
	return data, nil
}
