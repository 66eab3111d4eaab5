//go:build privileged

package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/cgroup"
)

// slay starts the harness, waits until its journal holds a text or a path of the
// run is there, ends it by SIGKILL, which nothing can prepare for, and wants that
// something of the run is left: slay TEXT|GLOB harness ARGS...
func slay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "harness" {
		ts.Fatalf("usage: slay TEXT|GLOB harness ARGS...")
	}
	cmd := program(ts, args[2:])
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.Now().Add(eventWithin)
	for came := false; !came; {
		var err error
		came, err = stands(ts, args[0])
		if over := time.Now().After(deadline); err != nil || over {
			ts.Check(errors.Join(err, cmd.Process.Kill(), <-ended))
			ts.Fatalf("%s never came", args[0])
		}
		select {
		case err := <-ended:
			ts.Fatalf("harness ended before %s was there: %v", args[0], err)
		default:
			time.Sleep(100 * time.Microsecond)
		}
	}
	ts.Check(cmd.Process.Kill())
	<-ended
	runs, err := filepath.Glob(ts.Getenv("STATE") + "/harness/runs/*")
	ts.Check(err)
	if len(runs) == 0 {
		ts.Fatalf("the killed harness left nothing, so this shows nothing")
	}
}

// stands tells whether a path is there, or a text is in the journal of the run
// that is under way.
func stands(ts *testscript.TestScript, what string) (bool, error) {
	if strings.Contains(what, "*") {
		there, err := filepath.Glob(what)
		return len(there) > 0, err
	}
	journals, err := filepath.Glob(ts.Getenv("STATE") + "/harness/runs/*/journal")
	if err != nil {
		return false, err
	}
	for _, name := range journals {
		data, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if bytes.Contains(data, []byte(what)) {
			return true, nil
		}
	}
	return false, nil
}

// clearAway removes what a script left that failed before the next start could.
func clearAway(state, group string) error {
	h, err := cgroup.Detect("/sys/fs/cgroup")
	if err != nil {
		return err
	}
	g, err := h.Open(group)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventWithin)
	defer cancel()
	errs := []error{g.Kill(ctx)}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(state))
	errs = append(errs, err)
	for _, m := range slices.Backward(mounts) {
		errs = append(errs, unix.Unmount(m.Mountpoint, unix.UMOUNT_NOFOLLOW))
	}
	if err := errors.Join(append(errs, g.Remove(ctx))...); err != nil {
		return err // the folder stays: something may be mounted in it
	}
	return os.RemoveAll(state)
}
