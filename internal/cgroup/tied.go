package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// StartTied is [Group.StartAfter] for a child that the kernel ends with this
// program: however the program dies, also by SIGKILL, the child gets SIGKILL in
// the same moment (prctl(2), PR_SET_PDEATHSIG). Nothing else is needed for it:
// no process that watches, no file and no later start.
//
// The kernel sends the signal when the thread that made the child ends, not the
// process. That thread is therefore kept, asleep and outside the group, until
// untie is called, which may be called more than once. Call it when the child
// has been waited for; before that it ends the child.
//
// What it does not do: end what the child started, unless that is tied in its
// turn, nor a child that changes its user or runs a set-user-id program, which
// clears the setting.
func (g *Group) StartTied(before func() error, cmd *exec.Cmd) (untie func(), err error) {
	until := make(chan struct{})
	untie = sync.OnceFunc(func() { close(until) })
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := g.start(before, cmd, until); err != nil {
		untie()
		return nil, err
	}
	return untie, nil
}

// home is where a thread was in each tree before it entered a group: the tasks
// files to write its id to when it goes back.
func (h *Hierarchy) home() ([]string, error) {
	data, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range h.trees {
		at, err := pathIn(data, t.controllers)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(t.root, at)
		// In a container the path may be told from above what is mounted:
		// its root is then the nearest to where the thread was.
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			dir = t.root
		}
		out = append(out, filepath.Join(dir, "tasks"))
	}
	return out, nil
}

// pathIn finds the path in the tree of any of these controllers in the text of
// /proc/PID/cgroup: lines of "id:controller,controller:path" (cgroups(7)).
func pathIn(data []byte, controllers []string) (string, error) {
	for line := range bytes.Lines(data) {
		fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for _, c := range strings.Split(fields[1], ",") {
			if slices.Contains(controllers, c) {
				return fields[2], nil
			}
		}
	}
	return "", fmt.Errorf("no line for %s in /proc/thread-self/cgroup", strings.Join(controllers, ","))
}

// move puts the calling thread into each of these groups (version 1, cgroups.rst,
// "tasks").
func move(tasks []string) error {
	for _, t := range tasks {
		if err := put(t, strconv.Itoa(unix.Gettid())); err != nil {
			return err
		}
	}
	return nil
}
