// Package filedigest hashes files that are asked about again and again, and
// reads one only when it may have changed.
//
// What a file is, is remembered by device, inode, size, modification time and
// change time together. The change time cannot be set by a program (utimensat(2)
// sets the other two), so a file that was written again with its old length and
// date is read again.
//
// What this package does not prove: that the file is the one that the kernel
// runs. A program which was started earlier keeps the bytes that it was started
// from, and a file system that keeps no change times (some network ones) can
// deceive it, as can whoever sets the machine's clock back. A write through a
// shared mapping (mmap(2)) is dated when the page is first made dirty, or when it
// is written back, and not with each store: one behind those leaves every mark as
// it was. [Cache.Reread] reads whatever the marks say.
package filedigest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// unsettled is for how long after its last change a file is not believed to be
// told from its next change: the kernel stamps times by its tick, which is 10 ms
// at the coarsest (CONFIG_HZ=100).
const unsettled = 20 * time.Millisecond

// Cache remembers the digest of each path that it was asked about, and of
// nothing else, so that it holds as many entries as there are paths. The zero
// value is ready, and its methods may be called from any goroutine.
type Cache struct {
	mu    sync.Mutex
	known map[string]entry
	reads atomic.Int64
}

type entry struct {
	mark   mark
	digest string
}

// mark tells one state of a file from another.
type mark struct {
	dev, ino     uint64
	size         int64
	mtime, ctime syscall.Timespec
}

// Reads is how many files were read whole so far.
func (c *Cache) Reads() int64 { return c.reads.Load() }

// Digest returns "sha256:<hex>" of the bytes of a regular file. A symlink is
// followed. What is no regular file is refused without being read.
func (c *Cache) Digest(path string) (string, error) { return c.digest(path, false) }

// Reread is [Cache.Digest] that always reads the file, and remembers what it is
// now.
func (c *Cache) Reread(path string) (string, error) { return c.digest(path, true) }

func (c *Cache) digest(path string, whole bool) (string, error) {
	// Without O_NONBLOCK a named pipe would hold us for ever (open(2)).
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	defer f.Close() // read only: nothing can be lost
	before, err := look(f)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	known, ok := c.known[path]
	c.mu.Unlock()
	if ok && known.mark == before && !whole {
		return known.digest, nil
	}
	c.reads.Add(1)
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("digest %s: %w", path, err)
	}
	after, err := look(f)
	if err != nil {
		return "", err
	}
	digest := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if before == after && after.settled(time.Now()) {
		c.remember(path, entry{after, digest})
	} else {
		c.forget(path)
	}
	return digest, nil
}

func (c *Cache) remember(path string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]entry{}
	}
	c.known[path] = e
}

func (c *Cache) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, path)
}

func look(f *os.File) (mark, error) {
	info, err := f.Stat()
	if err != nil {
		return mark{}, fmt.Errorf("digest: %w", err)
	}
	if !info.Mode().IsRegular() {
		return mark{}, fmt.Errorf("digest %s: not a regular file", f.Name())
	}
	st := info.Sys().(*syscall.Stat_t) // always that type on Linux
	return mark{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}, nil
}

// settled tells whether another change would show in the change time.
func (m mark) settled(now time.Time) bool {
	return now.Sub(time.Unix(m.ctime.Unix())).Abs() >= unsettled
}
