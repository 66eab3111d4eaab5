package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pollEvery is how often version 1, which has no event for emptiness that a
// program without a release agent could wait for, is asked again.
const pollEvery = 2 * time.Millisecond

// Procs returns the ids of the processes in the group and in all groups below
// it, in every tree, sorted. Zombies are not among them. The calling process is
// left out on version 1, where it shows for the moment in which [Group.Start]
// uses one of its threads. A group that is not there has no processes.
func (g *Group) Procs() ([]int, error) {
	var pids []int
	for _, dir := range g.dirs() {
		err := walk(dir, func(d string) error {
			data, err := os.ReadFile(filepath.Join(d, "cgroup.procs"))
			if gone(err) {
				return nil
			}
			if errors.Is(err, syscall.EOPNOTSUPP) {
				return nil // a threaded group's processes show in its domain
			}
			if err != nil {
				return err
			}
			for f := range bytes.FieldsSeq(data) {
				pid, err := strconv.Atoi(string(f))
				if err != nil {
					return fmt.Errorf("read %s: %w", filepath.Join(d, "cgroup.procs"), err)
				}
				if g.h.version == 2 || pid != os.Getpid() {
					pids = append(pids, pid)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list processes of cgroup %s: %w", g.path, err)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// gone covers both ways in which a removed group answers.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) }

// walk visits dir and every folder below it, children before parents. A folder
// that is not there, or vanishes meanwhile, is nothing to visit.
func walk(dir string, visit func(string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !gone(err) {
		return err
	}
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := walk(filepath.Join(dir, e.Name()), visit); err != nil {
				return err
			}
		}
	}
	return visit(dir)
}

// Kill ends every process in the group and below it with SIGKILL, also those
// that it forks meanwhile or that are stopped, and returns when none is left.
// It returns ctx's error when some outlive ctx, naming them.
func (g *Group) Kill(ctx context.Context) error {
	var err error
	if g.h.version == 2 {
		err = g.killV2(ctx)
	} else {
		err = g.killV1(ctx)
	}
	if err == nil {
		return nil
	}
	if left, e := g.Procs(); e == nil && len(left) > 0 {
		err = fmt.Errorf("%w: still there: %v", err, left)
	}
	return fmt.Errorf("kill cgroup %s: %w", g.path, err)
}

func (g *Group) killV2(ctx context.Context) error {
	dir := g.dirs()[0]
	err := put(filepath.Join(dir, "cgroup.kill"), "1") // Linux 5.14
	if gone(err) {
		if _, e := os.Stat(dir); gone(e) {
			return nil
		}
		return g.killEach(ctx, filepath.Join(dir, "cgroup.freeze"), "1", "0")
	}
	if err != nil {
		return err
	}
	return waitEmpty(ctx, filepath.Join(dir, "cgroup.events"))
}

// waitEmpty waits for "populated 0": the kernel wakes whoever polls the file
// when it changes (cgroup-v2.rst, "[Un]populated Notification").
func waitEmpty(ctx context.Context, name string) error {
	f, err := os.Open(name)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 256)
	for {
		n, err := f.ReadAt(buf, 0)
		if gone(err) || bytes.Contains(buf[:n], []byte("populated 0")) {
			return nil
		}
		if n == 0 && err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		// The poll is cut into slices, because it knows nothing of ctx.
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, 20)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll %s: %w", name, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (g *Group) killV1(ctx context.Context) error {
	return g.killEach(ctx, g.file("freezer", "freezer.state"), "FROZEN", "THAWED")
}

// killEach freezes the group, so that it cannot fork faster than it is killed,
// signals each process, thaws it and looks again until none is left. Where
// there is no freezer it loops without.
func (g *Group) killEach(ctx context.Context, freezer, freeze, thaw string) error {
	for {
		pids, err := g.Procs()
		if err != nil || len(pids) == 0 {
			return err
		}
		froze := freezer != "" && put(freezer, freeze) == nil
		err = g.signalAll()
		if froze {
			// A frozen process dies only when it is thawed.
			if e := put(freezer, thaw); e != nil && !gone(e) {
				err = errors.Join(err, e)
			}
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// signalAll sends SIGKILL to each process. Ids are reused, so a process is held
// by descriptor first, and signalled only if its id is in the group after that.
func (g *Group) signalAll() error {
	before, err := g.Procs()
	if err != nil {
		return err
	}
	held := make(map[int]int, len(before))
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd) // a pidfd's close has nothing to fail
		}
	}()
	for _, pid := range before {
		fd, e := unix.PidfdOpen(pid, 0)
		switch {
		case e == nil:
			held[pid] = fd
		case !errors.Is(e, unix.ESRCH):
			err = errors.Join(err, fmt.Errorf("pidfd_open %d: %w", pid, e))
		}
	}
	after, e := g.Procs()
	err = errors.Join(err, e)
	for _, pid := range after {
		fd, ok := held[pid]
		if !ok {
			continue // new: the next round takes it
		}
		if e := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); e != nil && !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("kill process %d: %w", pid, e))
		}
	}
	return err
}

// Remove removes the group and all groups below it in every tree. A group that
// still has tasks, or whose tasks are just ending, answers EBUSY: it is asked
// again until ctx ends. A group that is not there is removed already.
func (g *Group) Remove(ctx context.Context) error {
	var errs error
	for _, dir := range g.dirs() {
		if err := removeTree(ctx, dir); err != nil {
			errs = errors.Join(errs, fmt.Errorf("remove cgroup %s: %w", g.path, err))
		}
	}
	return errs
}

func removeTree(ctx context.Context, dir string) error {
	for {
		err := walk(dir, func(d string) error {
			// rmdir alone: a control file cannot and need not be unlinked.
			if err := unix.Rmdir(d); err != nil && !gone(err) {
				return &fs.PathError{Op: "rmdir", Path: d, Err: err}
			}
			return nil
		})
		if err == nil || !(errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY)) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}
