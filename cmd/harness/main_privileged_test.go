//go:build privileged

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/rogpeppe/go-internal/testscript"

	"tenwalls.dev/harness/reports"
)

// TestPrivilegedScript drives the harness over a real runsc: TENWALLS_RUNSC, or
// the one that the build puts into bin.
func TestPrivilegedScript(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("not root: a privileged test proves nothing without it")
	}
	runtime := os.Getenv("TENWALLS_RUNSC")
	if runtime == "" {
		var err error
		if runtime, err = filepath.Abs("../../bin/runsc"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(runtime); err != nil {
		t.Fatalf("no runsc to test with: %v", err)
	}
	all := maps.Clone(commands)
	all["interrupt"] = interrupt
	all["killed"] = killed
	all["gone"] = gone
	all["sound"] = sound
	all["slay"] = slay
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/privileged",
		RequireExplicitExec: true,
		Cmds:                all,
		Setup: func(env *testscript.Env) error {
			// Short: a unix socket stands below it (unix(7): 108 bytes).
			state, err := os.MkdirTemp("/tmp", "tw-")
			if err != nil {
				return err
			}
			group := filepath.Base(state)
			env.Defer(func() {
				if err := clearAway(state, "/"+group); err != nil {
					t.Error(err)
				}
			})
			env.Setenv("STATE", state)
			env.Setenv("GROUP", group)
			write := func(name, runtime, state string) error {
				config := fmt.Sprintf("runtime:\n  path: %s\nstate_dir: %s\ncgroup_parent: /%s\n", runtime, state, group)
				return os.WriteFile(filepath.Join(env.WorkDir, name), []byte(config), 0o644)
			}
			// The second has a state folder too: what a run makes stays in it.
			return errors.Join(write("runner.yaml", runtime, state), write("none.yaml", "/no/such/runsc", filepath.Join(state, "none")),
				write("of2022.yaml", os.Getenv("TENWALLS_RUNSC_2022"), state))
		},
	})
}

// eventWithin bounds the wait for a run to get as far as a test wants it.
const eventWithin = 30 * time.Second

// underway starts the harness, and returns when a path has appeared: GLOB harness ARGS...
func underway(ts *testscript.TestScript, args []string) (cmd *exec.Cmd, heard *hearing, ended chan error) {
	cmd = program(ts, args[2:])
	heard = &hearing{to: cmd.Stderr, word: []byte("cleaning up"), heard: make(chan struct{})}
	cmd.Stderr = heard
	ts.Check(cmd.Start())
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.Now().Add(eventWithin)
	for {
		there, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		if len(there) > 0 {
			return cmd, heard, ended
		}
		select {
		case err := <-ended:
			ts.Fatalf("harness ended before %s was there: %v", args[0], err)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			ts.Check(errors.Join(cmd.Process.Signal(syscall.SIGTERM), <-ended))
			ts.Fatalf("%s never came", args[0])
		}
	}
}

// interrupt starts the harness, waits until a path appears, sends the signal
// and wants exit code 130: interrupt SIGNALS GLOB harness ARGS... A
// signal named twice, as in SIGINT,SIGINT, is sent twice.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || args[2] != "harness" {
		ts.Fatalf("usage: interrupt SIGNALS GLOB harness ARGS...")
	}
	cmd, heard, ended := underway(ts, args[1:])
	for _, name := range strings.Split(args[0], ",") {
		ts.Check(cmd.Process.Signal(map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP}[name]))
		select { // signals that are pending together come in any order
		case <-heard.heard:
		case err := <-ended:
			ts.Fatalf("harness ended without a word: %v", err)
		}
	}
	<-ended
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		ts.Fatalf("exit code %d, want 130", got)
	}
}

// killed starts the harness and kills it once a path has appeared: killed GLOB
// harness ARGS... What it leaves is for the next run to remove.
func killed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "harness" {
		ts.Fatalf("usage: killed GLOB harness ARGS...")
	}
	cmd, _, ended := underway(ts, args)
	ts.Check(cmd.Process.Kill())
	<-ended
}

// hearing is a writer that tells when a word came by.
type hearing struct {
	to    io.Writer
	word  []byte
	heard chan struct{}
	once  sync.Once
}

func (h *hearing) Write(b []byte) (int, error) {
	if bytes.Contains(b, h.word) {
		h.once.Do(func() { close(h.heard) })
	}
	return h.to.Write(b)
}

// sound wants a report that its schema allows: sound FILE [TRIALS].
func sound(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: sound FILE [TRIALS]")
	}
	r, err := reports.Decode([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	if got := strconv.Itoa(len(r.Trials)); len(args) == 2 && got != args[1] {
		ts.Fatalf("%s trials, want %s", got, args[1])
	}
}

// gone wants that nothing of a run is left: no mount, process or run's folder
// below the state folder, no cgroup, nothing in the temporary folder.
func gone(ts *testscript.TestScript, neg bool, _ []string) {
	if neg {
		ts.Fatalf("gone has no opposite")
	}
	state := ts.Getenv("STATE")
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(state))
	ts.Check(err)
	for _, m := range mounts {
		ts.Fatalf("left mounted: %s", m.Mountpoint)
	}
	runs, err := filepath.Glob(state + "/harness/runs/*")
	ts.Check(err)
	groups, err := filepath.Glob("/sys/fs/cgroup/*/" + ts.Getenv("GROUP"))
	ts.Check(err)
	below, err := filepath.Glob("/sys/fs/cgroup/" + ts.Getenv("GROUP"))
	ts.Check(err)
	temporary, err := filepath.Glob(ts.Getenv("TMPDIR") + "/*")
	ts.Check(err)
	for _, left := range slices.Concat(runs, groups, below, temporary) {
		ts.Fatalf("left: %s", left)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	for _, file := range lines {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // ended in the meantime
		}
		ts.Check(err)
		if strings.Contains(string(data), state) {
			ts.Fatalf("left running: %s: %q", filepath.Dir(file), data)
		}
	}
}
