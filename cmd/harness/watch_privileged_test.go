//go:build privileged

package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/watch"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/admission"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// watchLife is that of the published file in these tests.
const watchLife = 6 * time.Second

// station is a worker with a daemon: the built harness, a runsc of its own that
// can be replaced, and a hook.
type station struct {
	t       *testing.T
	dir     string
	metrics string // where they are served
	gate    *admission.Gate
	cmd     *exec.Cmd
	end     chan error
}

// newStation makes the worker's files. The platform is one that old builds of
// runsc know too.
func newStation(t *testing.T) *station {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("not root: a privileged test proves nothing without it")
	}
	dir, err := os.MkdirTemp("/tmp", "tw-") // short: a unix socket stands in it
	check(t, err)
	s := &station{t: t, dir: dir, metrics: freePort(t)}
	t.Cleanup(func() {
		s.kill(syscall.SIGTERM)
		check(t, os.RemoveAll(dir))
	})
	check(t, os.Mkdir(s.in("bin"), 0o755))
	copyFile(t, pinnedRunsc(t), s.in("bin/runsc"))
	s.write("hook", "#!/bin/sh\ncat >>"+s.in("notices")+"; echo >>"+s.in("notices")+"\n")
	// Ten times the processor time as wall clock: others may work beside us.
	s.write("runner.yaml", fmt.Sprintf("runtime:\n  path: %s\n  platform: ptrace\nstate_dir: %s\ncgroup_parent: /%s\n"+
		"limits:\n  wall: 20s\n", s.in("bin/runsc"), s.in("r"), filepath.Base(dir)))
	s.write("harness.yaml", fmt.Sprintf(`runner: runner.yaml
state_dir: state
publish: pub/attestation.json
publish_life: %s
socket: {path: sock}
tick: 5s
retry: 2s
metrics: {listen: %s}
notify: {exec: [%s]}
`, watchLife, s.metrics, s.in("hook")))
	return s
}

func (s *station) in(name string) string { return filepath.Join(s.dir, name) }

func (s *station) write(name, text string) {
	s.t.Helper()
	check(s.t, os.WriteFile(s.in(name), []byte(text), 0o755))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pinnedRunsc(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("TENWALLS_RUNSC"); p != "" {
		return p
	}
	p, err := filepath.Abs("../../bin/runsc")
	check(t, err)
	return p
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	check(t, err)
	check(t, os.WriteFile(to, data, 0o755))
}

// replace puts another binary into place as a deployment does, and returns when.
func (s *station) replace(from string) time.Time {
	s.t.Helper()
	copyFile(s.t, from, s.in("bin/.new"))
	at := time.Now()
	check(s.t, os.Rename(s.in("bin/.new"), s.in("bin/runsc")))
	return at
}

func (s *station) harness(args ...string) *exec.Cmd {
	program, err := filepath.Abs("../../bin/harness")
	check(s.t, err)
	return exec.Command(program, args...)
}

func (s *station) start() {
	s.t.Helper()
	log, err := os.OpenFile(s.in("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	check(s.t, err)
	s.cmd = s.harness("watch", "--config", s.in("harness.yaml"))
	s.cmd.Stderr = log
	check(s.t, s.cmd.Start())
	check(s.t, log.Close())
	s.end = make(chan error, 1)
	go func(c *exec.Cmd, end chan<- error) { end <- c.Wait() }(s.cmd, s.end)
}

// kill ends the daemon and returns its state, nil when none runs.
func (s *station) kill(sig syscall.Signal) *os.ProcessState {
	s.t.Helper()
	if s.cmd == nil {
		return nil
	}
	check(s.t, s.cmd.Process.Signal(sig))
	<-s.end
	state := s.cmd.ProcessState
	s.cmd = nil
	return state
}

// open makes the gate of a broker, once the daemon has its key.
func (s *station) open() {
	s.t.Helper()
	key, err := attest.LoadPublicKey(s.in("state/keys/harness.pub"))
	check(s.t, err)
	s.gate, err = admission.New(admission.Options{File: s.in("pub/attestation.json"), Keys: []ed25519.PublicKey{key}, Runsc: s.in("bin/runsc")})
	check(s.t, err)
}

// ask is the broker's question, with the reason of a no.
func (s *station) ask() admission.Reason {
	s.t.Helper()
	job, err := sandbox.Seal(sandbox.Job{
		SchemaVersion: sandbox.SchemaVersion, ID: id.New(sandbox.PrefixJob), Key: "k", Scope: sandbox.Scope{Tenant: "t", Project: "p"}, Principal: "somebody",
		Image: evidence.Digest([]byte("image")), Argv: []string{"/bin/true"}, Network: sandbox.NetworkDenied, Limits: sandbox.DenyAllLimits(),
	})
	check(s.t, err)
	err = s.gate.Ask(job)
	var r *admission.Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	check(s.t, err)
	return ""
}

func (s *station) status() *watch.Status {
	st, err := watch.Client{Socket: s.in("sock")}.Status(context.Background())
	if err != nil {
		return &watch.Status{Why: err.Error()}
	}
	return st
}

// until waits for what the daemon comes to.
func (s *station) until(what string, within time.Duration, done func() bool) time.Time {
	s.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		if done() {
			return time.Now()
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(s.in("log")) // for the reader of the failure only
			s.t.Fatalf("%s: not within %s; status:\n%s\nlog:\n%s", what, within, s.status().Text(), log)
		}
	}
}

func (s *station) published() bool {
	_, err := os.Stat(s.in("pub/attestation.json"))
	return err == nil
}

// ran waits until another run has ended after that one.
func (s *station) ran(before *watch.Ran) *watch.Ran {
	s.t.Helper()
	var last *watch.Ran
	s.until("a run's end", 3*time.Minute, func() bool {
		time.Sleep(20 * time.Millisecond) // between two questions
		last = s.status().Last
		return last != nil && (before == nil || last.ID != before.ID)
	})
	return last
}

// qualified waits for a good run after that one. This host may be shared: a run
// that something else disturbed is made again, and told.
func (s *station) qualified(before *watch.Ran) *watch.Ran {
	s.t.Helper()
	for range 6 {
		last := s.ran(before)
		if last.Outcome == hostile.Qualified {
			s.until("published", time.Second, s.published)
			return last
		}
		s.t.Logf("run again: %s: %s %v", last.Outcome, last.Trouble, last.Walls[:min(2, len(last.Walls))])
		if last.Outcome == hostile.Refused { // an unproven one is made again by itself
			check(s.t, watch.Client{Socket: s.in("sock")}.Trigger(context.Background(), "disturbed"))
		}
		before = last
	}
	s.t.Fatal("this host is too busy: no run qualifies it")
	return nil
}

// notices are what the hook was told.
func (s *station) notices() (out []watch.Notice) {
	s.t.Helper()
	data, err := os.ReadFile(s.in("notices"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	check(s.t, err)
	for l := range strings.Lines(string(data)) {
		var n watch.Notice
		check(s.t, json.Unmarshal([]byte(l), &n))
		out = append(out, n)
	}
	return out
}

// TestWatchIsKilled: the file outlives the daemon by its life at most, the run
// that it had begun cleans up, and the next daemon begins anew.
func TestWatchIsKilled(t *testing.T) {
	s := newStation(t)
	s.start()
	first := s.qualified(nil)
	s.open()

	twice := s.harness("watch", "--config", s.in("harness.yaml"))
	if out, err := twice.CombinedOutput(); twice.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "another harness watch publishes") {
		t.Errorf("started twice: %v: %s", err, out)
	}
	s.write("other.yaml", "runner: runner.yaml\nstate_dir: other\npublish: pub/attestation.json\nsocket: {path: other.sock}\n")
	other := s.harness("watch", "--config", s.in("other.yaml"))
	if out, err := other.CombinedOutput(); other.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "another harness watch publishes") {
		t.Errorf("started with another state folder: %v: %s", err, out)
	}
	if !s.published() || s.ask() != "" {
		t.Error("the second one took the file of the first")
	}

	s.kill(syscall.SIGKILL)
	killed := time.Now()
	expired := s.until("expired", 2*watchLife, func() bool { return s.ask() == admission.Expired }).Sub(killed)
	t.Logf("nothing is admitted %s after the daemon was killed", expired)
	if expired > watchLife {
		t.Errorf("nothing is admitted only after %s", expired)
	}

	s.start()
	var child int
	s.until("a run", 30*time.Second, func() bool {
		data, err := os.ReadFile(s.in("state/runs/child.json"))
		var n struct{ PID int }
		if err != nil || json.Unmarshal(data, &n) != nil {
			return false
		}
		child = n.PID
		jobs, err := filepath.Glob(s.in("r/harness/runs/*/runner/jobs/*"))
		return err == nil && len(jobs) > 0 // sandboxes are running
	})
	if s.published() {
		t.Error("what the killed one left is still there")
	}
	s.kill(syscall.SIGKILL)
	s.until("the end of the killed one's run", time.Minute, func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/cgroup", child))
		return err != nil
	})
	if left, err := filepath.Glob(s.in("r/harness/runs/*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}

	s.start() // and the suite itself is killed: unproven, and run again
	s.until("a run", 30*time.Second, func() bool { return s.status().Running != nil && isThere(s.in("state/runs/child.json")) })
	data, err := os.ReadFile(s.in("state/runs/child.json"))
	check(t, err)
	var n struct{ PID int }
	check(t, json.Unmarshal(data, &n))
	check(t, syscall.Kill(n.PID, syscall.SIGKILL))
	next := s.ran(first)
	if next.Outcome != hostile.Unproven || !strings.Contains(next.Trouble, "signal: killed") || s.published() {
		t.Errorf("%+v", next)
	}
	if last := s.ran(next); last.Cause != watch.CauseRetry {
		t.Errorf("run again because of %s", last.Cause)
	}
	if left, err := filepath.Glob(s.in("state/runs/*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
