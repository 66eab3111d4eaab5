//go:build privileged

package runsc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox"
)

// fake is a runner over a program that says it is runsc and does body when it
// is asked to run.
func fake(t *testing.T, body string) *bench {
	t.Helper()
	file := script(t, `[ "$1" = --version ] && { echo runsc version fake; exit 0; }`+"\n"+body)
	return newBench(t, func(c *Config) { c.Runtime.Path = file })
}

// A runtime that is broken in any way ends the job with the runtime's words,
// and never with a success that no program of the job had.
func TestBrokenRuntime(t *testing.T) {
	for _, c := range []struct {
		name, body string
		reason     Reason
		words      string
	}{
		{"hangs", "exec sleep 300", ReasonWall, ""},
		{"hangs with children that ignore signals", "trap '' TERM INT HUP; sleep 300 & sleep 300", ReasonWall, ""},
		{"crashes", "kill -SEGV $$", ReasonRuntime, "segmentation fault"},
		{"is killed", "kill -KILL $$", ReasonRuntime, "killed"},
		{"fails with words", "echo first >&2; echo the last words >&2; exit 128", ReasonStart, "the last words"},
		{"does not know a flag", `echo 'flag provided but not defined: -x' >&2; echo 'Usage: runsc <flags>' >&2; echo >&2; echo 'Use "runsc flags" for a list' >&2; exit 128`, ReasonStart, "exited with 128: flag provided but not defined: -x"},
		{"fails as a program would", "echo usage >&2; exit 1", ReasonStart, "exited with 1: usage"},
		{"claims success", "echo graded: all well; exit 0", ReasonStart, "made no container"},
		{"logs its reason", `for a; do case $a in --log=*) echo '{"msg":"the logged reason","level":"error"}' >>"${a#--log=}";; esac; done; exit 128`, ReasonStart, "the logged reason"},
		{"logs noise", `for a; do case $a in --log=*) head -c 4096 /dev/urandom >"${a#--log=}";; esac; done; exit 128`, ReasonStart, "made no container"},
		{"floods", "while :; do echo flood; echo flood >&2; done", ReasonOutput, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := fake(t, c.body)
			job := b.job(t, func(j *sandbox.Job) { j.Limits.WallTime = time.Second }, "say", "x")
			began := time.Now()
			res := b.do(t, Probe{}, job)
			words, log, err := b.Detail(job.ID)
			if entries, e := os.ReadDir(log); log != "" && (e != nil || len(entries) == 0) {
				t.Errorf("logs %s: %d entries, %v", log, len(entries), e)
			}
			if err != nil || Reason(res.Reason) != c.reason || !strings.Contains(words, c.words) || res.State != sandbox.StateFailed {
				t.Errorf("ended %s (%s) with %q, %v; want %s with %q", res.Reason, res.State, words, err, c.reason, c.words)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// What a runtime leaves behind is ended with the job, in whatever session or
// process group it is.
func TestRuntimeLeavesChildren(t *testing.T) {
	said := filepath.Join(t.TempDir(), "pid")
	b := fake(t, "setsid sh -c 'echo $$ > "+said+"; exec sleep 300' &\nwhile [ ! -s "+said+" ]; do :; done; exit 0")
	b.do(t, Probe{}, b.job(t, nil, "say", "x"))
	data, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscan(string(data), &child); err != nil {
		t.Fatal(err)
	}
	gone(t, child)
}

// What a runtime mounts below the job's folder goes, and what it mounted from
// elsewhere keeps its files.
func TestRuntimeLeavesMounts(t *testing.T) {
	theirs := t.TempDir()
	if err := os.WriteFile(filepath.Join(theirs, "file"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := fake(t, `for a; do case $a in --root=*) d="${a#--root=}";; esac; done; mkdir $d/a $d/b && mount --bind `+theirs+` $d/a && mount -t tmpfs none $d/b && mkdir $d/b/c && mount -t tmpfs none $d/b/c; exit 128`)
	b.do(t, Probe{}, b.job(t, nil, "say", "x"))
	if data, err := os.ReadFile(filepath.Join(theirs, "file")); err != nil || string(data) != "theirs" {
		t.Errorf("somebody else's file was removed through a mount: %q, %v", data, err)
	}
}

// A process that got out of the job's cgroup and holds its output open is
// nothing that the runner can end by the cgroup: the job has not exited, though
// the runtime's command says so.
func TestRuntimeLetsSomethingOut(t *testing.T) {
	said := filepath.Join(t.TempDir(), "pid")
	// It makes its pid file, as runsc does once there is a container.
	b := fake(t, `for a; do case $a in --pid-file=*) echo 1 >"${a#--pid-file=}";; esac; done
setsid sh -c 'for f in /sys/fs/cgroup/*/tasks /sys/fs/cgroup/cgroup.procs; do [ -w $f ] && echo $$ >$f; done; echo $$ >`+said+`; exec sleep 300' &
while [ ! -s `+said+` ]; do :; done
exit 0`)
	b.Runner.within = 300 * time.Millisecond
	job := b.job(t, nil, "say", "x")
	res := b.do(t, Probe{}, job)
	data, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	var out int
	if _, err := fmt.Sscan(string(data), &out); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gone(t, out) })
	t.Cleanup(func() { _ = syscall.Kill(out, syscall.SIGKILL) })
	words, _, err := b.Detail(job.ID)
	if err != nil || Reason(res.Reason) != ReasonTeardown || res.State != sandbox.StateFailed || !strings.Contains(words, "a process outside the job holds its output open") {
		t.Errorf("ended %s (%s) with %q, %v", res.Reason, res.State, words, err)
	}
	// The job's own things were removed all the same, so the next start has nothing to do.
	if rec, err := b.store.find(job.ID); err != nil || !rec.Clean {
		t.Errorf("clean %t, %v", rec.Clean, err)
	}
}
