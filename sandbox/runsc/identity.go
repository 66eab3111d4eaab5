package runsc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/sandbox/filedigest"
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
	var out head
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

// NotScript refuses a runtime that is a script: its digest says nothing of the
// program that it starts, which can be replaced behind it.
func NotScript(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("runtime.path: %w", err)
	}
	defer f.Close() // read only
	first := make([]byte, 2)
	if n, err := io.ReadFull(f, first); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("runtime.path: %w", err)
	} else if string(first[:n]) == "#!" { // execve(2)
		return fmt.Errorf("runtime.path: %s is a script, and what it starts can be replaced behind it: name the runsc binary itself, and its flags in runtime.flags", path)
	}
	return nil
}

// head keeps the first bytes of what a program says.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, maxReason-h.Len()))])
	return len(p), nil
}

// digests remembers, so that an 80 MB binary is not read at every job.
var digests filedigest.Cache

// FileDigest returns "sha256:<hex>" of the file's bytes. It reads the file only
// when its size, times, inode or device have changed.
func FileDigest(path string) (string, error) { return digests.Digest(path) }
