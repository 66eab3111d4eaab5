package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// childFile notes the running child, for a daemon that follows a killed one.
const childFile = "child.json"

// noted is a process, told from a later one with the same number by when it
// began (proc(5), /proc/pid/stat, field 22).
type noted struct {
	PID   int    `json:"pid"`
	Began string `json:"began"`
	Boot  string `json:"boot"`
}

// note writes the running child down.
func note(dir string, pid int) error {
	began, err := beganAt(pid)
	if err != nil {
		return fmt.Errorf("note the child: %w", err)
	}
	boot, err := line("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return fmt.Errorf("note the child: %w", err)
	}
	data, err := json.Marshal(noted{pid, began, boot})
	if err != nil {
		return fmt.Errorf("note the child: %w", err)
	}
	if err := replace(filepath.Join(dir, childFile), data, 0o600); err != nil {
		return fmt.Errorf("note the child: %w", err)
	}
	return nil
}

func forget(dir string) error {
	if err := os.Remove(filepath.Join(dir, childFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the child: %w", err)
	}
	return nil
}

func beganAt(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name in parentheses may hold anything; the fields follow the last one.
	_, rest, ok := strings.Cut(string(data[max(0, strings.LastIndexByte(string(data), ')')):]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat: not in its form", pid)
	}
	return fields[19], nil // state is field 3
}

// endOrphan ends the child that a killed daemon left running, and waits until it
// has removed what it made: two suites at once would see each other. Folders of
// runs that did not complete are removed.
func endOrphan(ctx context.Context, dir string) error {
	if err := endNoted(ctx, dir); err != nil {
		return fmt.Errorf("end the run of an earlier daemon: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil {
		return fmt.Errorf("remove unfinished runs: %w", err)
	}
	errs := []error{forget(dir)}
	for _, l := range left {
		errs = append(errs, os.RemoveAll(l))
	}
	return errors.Join(errs...)
}

func endNoted(ctx context.Context, dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, childFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var n noted
	boot, err := line("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	if json.Unmarshal(data, &n) != nil || n.PID <= 1 || n.Boot != boot {
		return nil // another boot's, or no note of ours: nothing to end
	}
	fd, err := unix.PidfdOpen(n.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pidfd of %d: %w", n.PID, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	// Only now, with the descriptor in hand, can the number not pass to another.
	if began, err := beganAt(n.PID); err != nil || began != n.Began {
		return nil //nolint:nilerr // it has ended
	}
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("%s to %d: %w", unix.SignalName(s), n.PID, err)
		}
		gone, err := ended(ctx, fd, endWithin)
		if err != nil || gone {
			return err
		}
	}
	return fmt.Errorf("%d does not end", n.PID)
}

// ended waits for the end of a process by its descriptor (pidfd_open(2)).
func ended(ctx context.Context, fd int, within time.Duration) (bool, error) {
	for deadline := time.Now().Add(within); ctx.Err() == nil && time.Now().Before(deadline); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, fmt.Errorf("poll: %w", err)
		}
		if n > 0 {
			return true, nil
		}
	}
	return false, context.Cause(ctx)
}
