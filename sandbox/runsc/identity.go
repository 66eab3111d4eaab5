package runsc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Identity is which runsc it is.
type Identity struct {
	Path    string // absolute
	Version string // as it says of itself
	Digest  string // of the binary, "sha256:<hex>"
}

// Identify asks the binary at path what it is. It fails when there is none,
// when it is not runsc, when it hangs and when it crashes, and says which.
func Identify(ctx context.Context, path string) (Identity, error) {
	return identify(ctx, path, identifyWithin)
}

func identify(ctx context.Context, path string, within time.Duration) (Identity, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return Identity{}, fmt.Errorf("runtime.path: no runsc: %w (make build builds the pinned one)", err)
	case st.IsDir() || st.Mode()&0o111 == 0:
		return Identity{}, fmt.Errorf("runtime.path: %s is not an executable file", path)
	}
	asked, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(asked, path, "--version")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	// What is asked may be no runsc: what it starts goes with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = pipesWithin
	var out bounded
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return Identity{}, fmt.Errorf("runtime.path: %s --version: %w", path, context.Cause(ctx))
	case asked.Err() != nil:
		return Identity{}, fmt.Errorf("runtime.path: %s --version did not end within %s", path, within)
	case err != nil:
		return Identity{}, fmt.Errorf("runtime.path: %s --version: %w: %s", path, err, shorten(out.String()))
	}
	version, ok := strings.CutPrefix(out.String(), "runsc version ")
	if !ok {
		return Identity{}, fmt.Errorf("runtime.path: %s is not runsc: it says %q to --version", path, shorten(out.String()))
	}
	version, _, _ = strings.Cut(version, "\n")
	digest, err := FileDigest(path)
	if err != nil {
		return Identity{}, fmt.Errorf("runtime.path: %w", err)
	}
	return Identity{Path: path, Version: shorten(version), Digest: digest}, nil
}

// bounded keeps the first bytes of what a program says.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, maxReason-b.Len()))])
	return len(p), nil
}

// digests remembers the digest of a file as long as size, times, inode and
// device stay the same: an 80 MB binary is not read at every job.
var digests sync.Map // fileIdentity -> string

type fileIdentity struct {
	path         string
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// FileDigest returns "sha256:<hex>" of the file's bytes. What is not a regular
// file is refused by its name, and never waited for: opening a named pipe would
// else block until somebody writes to it (fifo(7)).
func FileDigest(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", fmt.Errorf("digest %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", fmt.Errorf("digest %s: not a regular file", path)
	}
	key := fileIdentity{path, uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}
	if d, ok := digests.Load(key); ok {
		return d.(string), nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("digest %s: %w", path, err)
	}
	d := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	digests.Store(key, d)
	return d, nil
}
