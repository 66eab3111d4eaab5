//go:build privileged

package runsc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

func TestEndings(t *testing.T) {
	b := newBench(t, nil)
	tests := []struct {
		name   string
		argv   []string
		change func(*sandbox.Job)
		probe  Probe
		reason Reason
		exit   int
		stdout string
	}{
		{name: "exited", argv: []string{"say", "hello"}, reason: ReasonExited, stdout: "hello\n"},
		{name: "exit code", argv: []string{"exit", "7"}, reason: ReasonExited, exit: 7},
		{name: "processor", argv: []string{"spin"}, change: func(j *sandbox.Job) { j.Limits.CPUMillis = 1000 }, reason: ReasonCPU, exit: 137},
		{name: "wall clock", argv: []string{"sleep"}, change: func(j *sandbox.Job) { j.Limits.WallTime = time.Second }, reason: ReasonWall, exit: 137},
		{name: "output", argv: []string{"flood"}, reason: ReasonOutput, exit: 137},
		{name: "memory", argv: []string{"eat"}, reason: ReasonMemory, exit: 137},
		{name: "no such program", argv: nil, change: func(j *sandbox.Job) { j.Argv = []string{"/bin/nothing"} }, reason: ReasonStart, exit: 128},
		{
			name: "limit behind the cap", argv: []string{"spin"},
			change: func(j *sandbox.Job) { j.Limits.CPUMillis = 1000 },
			probe:  Probe{Change: func(w *Walls) { w.CPU = 0 }}, reason: ReasonExited, exit: 137,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			job := b.job(t, tt.change, tt.argv...)
			res := b.do(t, tt.probe, job)
			if Reason(res.Reason) != tt.reason || (tt.reason == ReasonExited && res.ExitCode != tt.exit) || res.State != tt.reason.State() {
				words, log, _ := b.Detail(job.ID)
				t.Fatalf("ended %s with %d (%s %s), want %s with %d", res.Reason, res.ExitCode, words, log, tt.reason, tt.exit)
			}
			if tt.stdout != "" && string(res.Stdout) != tt.stdout {
				t.Errorf("stdout %q, want %q", res.Stdout, tt.stdout)
			}
			if n := int64(len(res.Stdout) + len(res.Stderr)); n > job.Limits.OutputBytes || (tt.reason == ReasonOutput && n != job.Limits.OutputBytes) {
				t.Errorf("%d bytes of output kept, the bound is %d", n, job.Limits.OutputBytes)
			}
		})
	}
}

func TestStartFailureNamesTheRuntimesReason(t *testing.T) {
	b := newBench(t, nil)
	job := b.job(t, nil, "say", "x")
	res := b.do(t, Probe{Change: func(w *Walls) {
		w.Mounts = []Mount{{Source: "/nonexistent-source", Target: "/mnt"}}
	}}, job)
	words, log, err := b.Detail(job.ID)
	if err != nil || Reason(res.Reason) != ReasonStart || !strings.Contains(words, "/nonexistent-source") || log == "" {
		t.Errorf("reason %s, words %q, log %q, error %v: want the runtime's own words", res.Reason, words, log, err)
	}
}

func TestSubmitIsIdempotentByKey(t *testing.T) {
	b := newBench(t, nil)
	job := b.job(t, nil, "say", "once")
	b.do(t, Probe{}, job)
	ran := false
	again, err := b.SubmitProbe(t.Context(), job, Probe{At: func(Stage, Traces) { ran = true }})
	if err != nil || again.Job.Digest != job.Digest {
		t.Fatalf("submitted again: %v", err)
	}
	other := b.job(t, func(j *sandbox.Job) { j.Key = job.Key }, "say", "other")
	if _, err := b.Submit(t.Context(), other); !errors.Is(err, sandbox.ErrConflict) {
		t.Errorf("another job under the key: %v", err)
	}
	if _, err := b.Inspect(t.Context(), other.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("inspect the refused job: %v", err)
	}
	if _, err := b.Wait(t.Context(), job.ID); err != nil || ran {
		t.Errorf("the job ran twice (%v)", err)
	}
}

func TestCancel(t *testing.T) {
	b := newBench(t, nil)
	job := b.job(t, nil, "sleep")
	started := make(chan struct{})
	if _, err := b.SubmitProbe(t.Context(), job, Probe{At: func(s Stage, _ Traces) {
		if s == StageStarted {
			close(started)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := b.Cancel(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	st, err := b.Wait(t.Context(), job.ID)
	if err != nil || st.State != sandbox.StateCancelled || st.Revision != 3 {
		t.Errorf("state %s revision %d, %v", st.State, st.Revision, err)
	}
	b.nothingLeft(t, job)
}

func TestArtifacts(t *testing.T) {
	b := newBench(t, nil)
	out := sandbox.Output{ID: id.New("art"), Path: "answer", MediaType: "text/plain", MaxBytes: 5}
	declare := func(j *sandbox.Job) { j.Outputs = []sandbox.Output{out} }
	tests := []struct {
		name   string
		argv   []string
		reason Reason
	}{
		{"within", []string{"write", "/scratch/answer", "12345"}, ReasonExited},
		{"one too many", []string{"write", "/scratch/answer", "123456"}, ReasonArtifact},
		{"link", []string{"link", "/etc/passwd", "/scratch/answer"}, ReasonArtifact},
		{"missing", []string{"say", "nothing"}, ReasonArtifact},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			job := b.job(t, declare, tt.argv...)
			res := b.do(t, Probe{}, job)
			if Reason(res.Reason) != tt.reason || (len(res.Artifacts) == 1) != (tt.reason == ReasonExited) {
				words, _, _ := b.Detail(job.ID)
				t.Fatalf("ended %s with %d artifacts (%s), want %s", res.Reason, len(res.Artifacts), words, tt.reason)
			}
			if tt.reason == ReasonExited && string(b.shelf.bytes[out.ID]) != "12345" {
				t.Errorf("captured %q", b.shelf.bytes[out.ID])
			}
		})
	}
}

func TestInputsAreMountedAsSealed(t *testing.T) {
	b := newBench(t, nil)
	data := []byte("the submission\n")
	ref := evidence.Ref{ID: id.New("art"), Digest: evidence.Digest(data), Size: int64(len(data)), MediaType: "text/plain", Producer: "test", Source: "test"}
	b.shelf.bytes[ref.ID] = data
	give := func(j *sandbox.Job) { j.Inputs = []sandbox.Input{{Path: "a/b.txt", Ref: ref}} }
	if res := b.do(t, Probe{}, b.job(t, give, "cat", "/inputs/a/b.txt")); string(res.Stdout) != string(data) {
		t.Errorf("read %q (%s)", res.Stdout, res.Reason)
	}
	b.shelf.bytes[ref.ID] = []byte("the Submission\n")
	if res := b.do(t, Probe{}, b.job(t, give, "cat", "/inputs/a/b.txt")); Reason(res.Reason) != ReasonInput {
		t.Errorf("a changed input ended %s", res.Reason)
	}
}
