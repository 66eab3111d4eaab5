//go:build privileged

package runsc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
)

// untouched checks that a refused job left nothing, neither on the host nor in
// the store.
func (b *bench) untouched(t *testing.T, job sandbox.Job) {
	t.Helper()
	b.nothingLeft(t, job)
	if _, err := b.Inspect(t.Context(), job.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("inspect a refused job: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(b.cfg.StateDir, "jobs")); err != nil || len(left) > 0 {
		t.Errorf("job folders %v, %v", left, err)
	}
	if left, err := cgroupsAt("/sys/fs/cgroup", b.cfg.CgroupParent); err != nil || len(left) > 0 {
		t.Errorf("cgroups %v, %v", left, err)
	}
}

func TestUnqualifiedRunsNothing(t *testing.T) {
	b := fake(t, "exit 128")
	vouch := b.Runner.opt.Vouch
	with := func(change func(*sandbox.Capabilities)) func() (sandbox.Capabilities, error) {
		return func() (sandbox.Capabilities, error) {
			c, err := vouch()
			change(&c)
			return c, err
		}
	}
	reached := errors.New("the attestation cannot be read")
	for _, c := range []struct {
		name  string
		vouch func() (sandbox.Capabilities, error)
		also  error
	}{
		{"vouch fails", func() (sandbox.Capabilities, error) { return sandbox.Capabilities{}, reached }, reached},
		{"nothing vouched", func() (sandbox.Capabilities, error) { return sandbox.Capabilities{}, nil }, nil},
		{"expired", with(func(c *sandbox.Capabilities) { c.QualifiedUntil = time.Now().Add(-time.Second) }), nil},
		{"another profile", with(func(c *sandbox.Capabilities) { c.Profile = "runsc-open" }), nil},
		{"another digest", with(func(c *sandbox.Capabilities) { c.RuntimeDigest = evidence.Digest([]byte("x")) }), nil},
		{"more than is configured", with(func(c *sandbox.Capabilities) { c.Limits.MemoryBytes++ }), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.Runner.opt.Vouch = c.vouch
			job := b.job(t, nil, "say", "x")
			_, err := b.Submit(t.Context(), job)
			if !errors.Is(err, sandbox.ErrUnqualified) || (c.also != nil && !errors.Is(err, c.also)) {
				t.Errorf("submit: %v", err)
			}
			if _, err := b.Capabilities(t.Context()); !errors.Is(err, sandbox.ErrUnqualified) {
				t.Errorf("capabilities: %v", err)
			}
			b.untouched(t, job)
		})
	}
	t.Run("the binary is replaced", func(t *testing.T) {
		b.Runner.opt.Vouch = vouch
		if _, err := b.Capabilities(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.cfg.Runtime.Path, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		job := b.job(t, nil, "say", "x")
		if _, err := b.Submit(t.Context(), job); !errors.Is(err, sandbox.ErrUnqualified) || !strings.Contains(err.Error(), "was qualified") {
			t.Errorf("submit: %v", err)
		}
		b.untouched(t, job)
		if err := os.Remove(b.cfg.Runtime.Path); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Submit(t.Context(), job); !errors.Is(err, sandbox.ErrUnqualified) {
			t.Errorf("submit without a binary: %v", err)
		}
		b.untouched(t, job)
	})
	t.Run("a job that was changed", func(t *testing.T) {
		job := b.job(t, nil, "say", "x")
		job.Argv = []string{"/bin/evil"}
		if _, err := b.Submit(t.Context(), job); !errors.Is(err, sandbox.ErrMutated) {
			t.Errorf("submit: %v", err)
		}
		b.untouched(t, job)
	})
}

// A host whose cgroups are not there, or cannot be written, runs nothing and is
// told of.
func TestBadCgroups(t *testing.T) {
	b := fake(t, "exit 0")
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	opt := b.opt
	opt.Cgroups = filepath.Join(t.TempDir(), "absent")
	if _, err := Open(b.cfg, opt); err == nil || !strings.Contains(err.Error(), "detect cgroups") {
		t.Errorf("no cgroups: %v", err)
	}
	opt.Cgroups = t.TempDir()
	if err := os.WriteFile(filepath.Join(opt.Cgroups, "cgroup.controllers"), []byte("cpu io\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(b.cfg, opt); err == nil || !strings.Contains(err.Error(), `lacks "memory"`) {
		t.Errorf("no controller: %v", err)
	}
	// The same folder with every controller, and nothing in it can be made.
	for _, name := range []string{"cgroup.controllers", "cgroup.subtree_control"} {
		if err := os.WriteFile(filepath.Join(opt.Cgroups, name), []byte("memory pids\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(opt.Cgroups, opt.Cgroups, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(opt.Cgroups, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", opt.Cgroups, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	r, err := Open(b.cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	ro := &bench{Runner: r, cfg: b.cfg, opt: opt, shelf: b.shelf}
	job := ro.job(t, nil, "say", "x")
	res := ro.do(t, Probe{}, job)
	if words, _, _ := r.Detail(job.ID); Reason(res.Reason) != ReasonStart || !strings.Contains(words, "read-only file system") {
		t.Errorf("ended %s with %q", res.Reason, words)
	}
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestOpenWantsItsOptions(t *testing.T) {
	b := fake(t, "exit 0")
	for name, change := range map[string]func(*Options){
		"vouch": func(o *Options) { o.Vouch = nil }, "key": func(o *Options) { o.Key = nil }, "broker": func(o *Options) { o.Broker = "" },
	} {
		opt := b.opt
		change(&opt)
		if _, err := Open(b.cfg, opt); err == nil || !strings.Contains(err.Error(), "are needed") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if _, err := Open(b.cfg, b.opt); err == nil || !strings.Contains(err.Error(), "another runner holds it") {
		t.Errorf("a second runner: %v", err)
	}
}
