//go:build privileged

package runsc

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

// start submits a job and returns when its runtime runs.
func (b *bench) start(t *testing.T, job sandbox.Job) {
	t.Helper()
	started, stored := make(chan struct{}), make(chan struct{})
	if _, err := b.SubmitProbe(t.Context(), job, Probe{At: func(s Stage, _ Traces) {
		switch s {
		case StageStarted:
			close(started)
		case StageStored:
			close(stored)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-started:
	case <-stored:
		t.Fatal("the job ended before it was started")
	}
}

func TestBeforeTheEnd(t *testing.T) {
	b := newBench(t, nil)
	job := b.job(t, nil, "sleep")
	b.start(t, job)
	if st, err := b.Inspect(t.Context(), job.ID); err != nil || st.State != sandbox.StateRunning || st.Revision != 2 {
		t.Errorf("inspect: %s revision %d, %v", st.State, st.Revision, err)
	}
	if res, err := b.Collect(t.Context(), job.ID); err == nil || !strings.Contains(err.Error(), "has no result yet") || res.State != "" {
		t.Errorf("collect: %+v, %v", res, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Wait(ctx, job.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v", err)
	}
	for what, err := range map[string]error{
		"inspect": func() error { _, err := b.Inspect(t.Context(), "sjob_absent"); return err }(),
		"collect": func() error { _, err := b.Collect(t.Context(), "sjob_absent"); return err }(),
		"wait":    func() error { _, err := b.Wait(t.Context(), "sjob_absent"); return err }(),
		"cancel":  b.Cancel(t.Context(), "sjob_absent"),
	} {
		if !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("%s of a job that is not there: %v", what, err)
		}
	}
	// To cancel is to ask: twice is no error, and after the end it changes nothing.
	for range 2 {
		if err := b.Cancel(t.Context(), job.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Wait(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Cancel(t.Context(), job.ID); err != nil {
		t.Error(err)
	}
	if st, err := b.Inspect(t.Context(), job.ID); err != nil || st.State != sandbox.StateCancelled || st.Revision != 3 {
		t.Errorf("after the end: %s revision %d, %v", st.State, st.Revision, err)
	}
	b.nothingLeft(t, job)
}

func TestCloseCancelsWhatRuns(t *testing.T) {
	b := newBench(t, nil)
	jobs := []sandbox.Job{b.job(t, nil, "sleep"), b.job(t, nil, "spin")}
	for _, j := range jobs {
		b.start(t, j)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	late := b.job(t, nil, "say", "late")
	if _, err := b.Submit(t.Context(), late); err == nil || !strings.Contains(err.Error(), "the runner is closed") {
		t.Errorf("submit to a closed runner: %v", err)
	}
	b.reopen(t)
	for _, j := range jobs {
		if st, err := b.Inspect(t.Context(), j.ID); err != nil || st.State != sandbox.StateCancelled {
			t.Errorf("state %s, %v", st.State, err)
		}
		b.nothingLeft(t, j)
	}
	if _, err := b.Inspect(t.Context(), late.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("the late job: %v", err)
	}
}

func TestJobsAtOnce(t *testing.T) {
	b := newBench(t, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		word := strings.Repeat("x", i+1)
		job := b.job(t, nil, "say", word)
		wg.Go(func() {
			if _, err := b.Submit(t.Context(), job); err != nil {
				t.Error(err)
				return
			}
			if _, err := b.Wait(t.Context(), job.ID); err != nil {
				t.Error(err)
				return
			}
			res, err := b.Collect(t.Context(), job.ID)
			if words, _, _ := b.Detail(job.ID); err != nil || Reason(res.Reason) != ReasonExited || string(res.Stdout) != word+"\n" {
				t.Errorf("job %d ended %s, said %q (%s), %v", i, res.Reason, res.Stdout, words, err)
			}
			b.nothingLeft(t, job)
		})
	}
	wg.Wait()
}

// A record that was edited to name other places is refused at the next start,
// and nothing there is removed.
func TestRecoveryOfAnEditedRecord(t *testing.T) {
	b := fake(t, "exit 128")
	job := b.job(t, nil, "say", "x")
	b.do(t, Probe{}, job)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.MkdirAll(filepath.Join(victim, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.cfg.StateDir, "jobs", string(job.ID))
	for name, c := range map[string]struct{ dir, cgroup string }{
		"folder":   {victim, b.cfg.CgroupParent + "/" + string(job.ID)},
		"way up":   {dir + "/../../../victim", b.cfg.CgroupParent + "/" + string(job.ID)},
		"cgroup":   {dir, "/tenwalls-test-victim"},
		"no paths": {"", ""},
	} {
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		rewrite(t, b, job.ID, func(r *record) { r.Clean, r.Dir, r.Cgroup = false, c.dir, c.cgroup })
		if r, err := Open(b.cfg, b.opt); err == nil || !strings.Contains(err.Error(), string(job.ID)) || !strings.Contains(err.Error(), "change it back") {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				_ = r.Close(t.Context())
			}
		}
		if _, err := os.Stat(filepath.Join(victim, "deep")); err != nil {
			t.Errorf("%s: removed elsewhere: %v", name, err)
		}
		rewrite(t, b, job.ID, func(r *record) { r.Dir, r.Cgroup = dir, b.cfg.CgroupParent+"/"+string(job.ID) })
		b.reopen(t) // changed back, it starts
	}
}

// rewrite edits the record of a job in the state of a closed runner.
func rewrite(t *testing.T, b *bench, job id.ID, f func(*record)) {
	t.Helper()
	keys, err := newKeyring(b.opt.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(stateFile(b.cfg.StateDir), keys)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.change(job, time.Now(), func(r *record) error { f(r); return nil })
	if err := errors.Join(err, s.close()); err != nil {
		t.Fatal(err)
	}
}

// An edited state file stops the runner before it does anything. With the file
// put back nothing is lost, and what ran does not run again.
func TestEditedStateRunsNothing(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	b := fake(t, "echo run >>"+runs+"; exit 128")
	job := b.job(t, nil, "say", "x")
	first := b.do(t, Probe{}, job)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := stateFile(b.cfg.StateDir)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// As somebody would who wants it run once more.
	byHand(t, file, swap(job.ID, `"state":"failed"`, `"state":"accepted"`))
	byHand(t, file, swap(job.ID, `"result":`, `"resolt":`))
	byHand(t, file, swap(job.ID, `"argv":["/bin/guest"`, `"argv":["/bin/ghost"`))
	if r, err := Open(b.cfg, b.opt); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), string(job.ID)) || !strings.Contains(err.Error(), "put the file back") {
		t.Errorf("edited: %v", err)
		if err == nil {
			_ = r.Close(t.Context())
		}
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	b.reopen(t)
	b.do(t, Probe{}, job)
	if again, err := b.Collect(t.Context(), job.ID); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("the result is %+v, %v; it was %+v", again, err, first)
	}
	if said, err := os.ReadFile(runs); err != nil || string(said) != "run\n" {
		t.Errorf("runs: %q, %v", said, err)
	}
}

// A runner with a new key takes its state over when it is told of the old one.
func TestRotatedKey(t *testing.T) {
	b := fake(t, "exit 128")
	job := b.job(t, nil, "say", "x")
	first := b.do(t, Probe{}, job)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	former := b.opt.Key.Public().(ed25519.PublicKey)
	b.opt.Key = testKey(7)
	if _, err := Open(b.cfg, b.opt); err == nil || !strings.Contains(err.Error(), "Options.Former") {
		t.Errorf("a new key: %v", err)
	}
	b.opt.Former = []ed25519.PublicKey{former}
	b.reopen(t)
	if again, err := b.Collect(t.Context(), job.ID); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("the result is %+v, %v; it was %+v", again, err, first)
	}
}
