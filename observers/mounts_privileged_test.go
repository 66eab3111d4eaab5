//go:build privileged

package observers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMountsControlSeesItsOwnEffect(t *testing.T) {
	needRoot(t)
	control := NewMounts(Local()).Control(context.Background())
	if !control.Passed {
		t.Fatalf("%+v", control)
	}
	t.Logf("%+v", control)
}

// watchProbe runs a probe under the observer, which samples it without a pause
// from before its start until its steps are done, and then once more.
func watchProbe(t *testing.T, o Observer, setup probeSetup, grants func(*probe) []string) (Observation, *probe) {
	t.Helper()
	var watch Watch
	ready, sampled := make(chan struct{}), make(chan struct{})
	setup.started = func(p *probe) {
		var err error
		subject := Subject{Place: "test", Cgroup: p.cgroup, Grants: []string{p.image, p.inputs}}
		if grants != nil {
			subject.Grants = grants(p)
		}
		watch, err = o.Watch(context.Background(), subject)
		must(t, err)
		go func() {
			defer close(sampled)
			for {
				select {
				case <-ready:
					return
				default:
					watch.Sample()
				}
			}
		}()
	}
	p := startProbe(t, setup)
	close(ready)
	<-sampled
	watch.Sample()
	p.stop()
	watch.Ended()
	return watch.Stored(), p
}

func TestMountsOfARealSandbox(t *testing.T) {
	neighbour := t.TempDir()
	withNeighbour := map[string]string{"/neighbour": neighbour}
	for _, test := range []struct {
		name             string
		setup            probeSetup
		grants           func(*probe) []string
		mounts, writable int64
		folders          bool
		found            string
	}{
		{name: "only its grants"},
		{name: "gofer opens for the sandbox", setup: probeSetup{flags: []string{"--directfs=false"}}},
		{name: "with a debug log", setup: probeSetup{flags: []string{"--debug-log=" + t.TempDir() + "/"}}},
		{name: "the neighbour's folder", setup: probeSetup{extra: withNeighbour}, mounts: 1, folders: true, found: neighbour},
		{
			name: "the same folder, granted", setup: probeSetup{extra: withNeighbour},
			grants: func(p *probe) []string { return []string{p.image, p.inputs, neighbour} },
		},
		{name: "writable root", setup: probeSetup{writable: true, flags: []string{"--overlay2=none"}}, writable: 1, found: "writable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.setup.steps = []string{"open", "/etc", "open", "/neighbour"}
			seen, _ := watchProbe(t, NewMounts(Local()), test.setup, test.grants)
			t.Logf("%+v", seen)
			if seen.Lost != "" || seen.Samples < 2 || seen.Values["judged"].Worst < 2 {
				t.Fatalf("lost its window: %+v", seen)
			}
			if got := seen.Values["foreign_mounts"].Worst; got != test.mounts {
				t.Errorf("foreign mounts: got %d, want %d", got, test.mounts)
			}
			if got := seen.Values["foreign_folders"].Worst; (got > 0) != test.folders {
				t.Errorf("foreign folders: got %d, want some: %v", got, test.folders)
			}
			if got := seen.Values["root_writable"].Worst; got != test.writable {
				t.Errorf("root_writable: got %d, want %d", got, test.writable)
			}
			if found := strings.Join(seen.Found, "\n"); !strings.Contains(found, test.found) || (test.found == "" && found != "") {
				t.Errorf("found %q, want %q in it", found, test.found)
			}
		})
	}
}

// When a job ends its gofer may be gone before the sandbox is, and with it the
// mount table in which the files that the sandbox still holds were granted.
func TestMountsOfASandboxThatOutlivesItsGofer(t *testing.T) {
	var watch Watch
	p := startProbe(t, probeSetup{steps: []string{"open", "/etc"}, started: func(p *probe) {
		var err error
		watch, err = NewMounts(Local()).Watch(context.Background(), Subject{Place: "test", Cgroup: p.cgroup, Grants: []string{p.image, p.inputs}})
		must(t, err)
	}})
	watch.Sample()
	pids, err := jobPIDs(Local(), p.cgroup)
	must(t, err)
	gofer := 0
	for _, pid := range pids {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		must(t, err)
		if strings.Contains(string(cmdline), "\x00gofer\x00") {
			gofer = pid
			continue
		}
		must(t, unix.Kill(pid, unix.SIGSTOP)) // else it would follow
	}
	if gofer == 0 {
		t.Fatal("there is no gofer")
	}
	must(t, unix.Kill(gofer, unix.SIGKILL))
	must(t, eventually(func() error {
		if !ending(Local(), strconv.Itoa(gofer)) {
			return errors.New("the gofer is still there")
		}
		return nil
	}))
	for range 3 {
		watch.Sample()
	}
	if seen := watch.Stored(); seen.Lost != "" || seen.Values["judged"].Worst < 2 || len(seen.Found) > 0 || seen.Values["foreign_folders"].Worst != 0 {
		t.Errorf("%+v", seen)
	}
}
