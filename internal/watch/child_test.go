package watch

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// workbench is a place where a made up harness runs: a script that puts prepared
// files into its folder, and ends as it is told to.
type workbench struct {
	t     *testing.T
	dir   string
	child *Child
	key   ed25519.PrivateKey
}

func newWorkbench(t *testing.T, body string) *workbench {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	w := &workbench{t: t, dir: t.TempDir(), key: key}
	must(t, os.Mkdir(filepath.Join(w.dir, "prepared"), 0o755))
	// run --config RUNNER --out DIR --key KEY --valid-for D
	program := script(t, `prepared=`+w.dir+`/prepared; out=$5; echo "$@" >"$out.args"; echo last words >&2`+"\n"+body)
	w.child = &Child{Program: program, Runs: filepath.Join(w.dir, "runs"), Key: "/key", Public: pub, Log: quiet}
	must(t, os.Mkdir(w.child.Runs, 0o755))
	return w
}

func (w *workbench) request() Request {
	return Request{ID: string(id.New("watch")), Runner: "/runner.yaml", ValidFor: time.Hour, Within: time.Minute, Identity: boxed, Cause: CauseSchedule, Reason: "it is time"}
}

// prepare writes the files of a run with that outcome.
func (w *workbench) prepare(outcome hostile.Outcome) {
	w.t.Helper()
	r := &reports.Report{
		Schema: reports.Schema, Run: string(id.New("run")), Started: time.Now().UTC(), Complete: true, Outcome: outcome,
		Harness: reports.Harness{Version: "test", Digest: boxed.Harness},
		Host:    reports.Host{Name: "h", Kernel: boxed.Kernel, BootID: boxed.BootID, Arch: "amd64", CgroupVersion: 2},
		Runtime: reports.Runtime{Path: "/runsc", Version: "test", Digest: boxed.Runtime, Platform: "systrap"},
		Image:   reports.Image{Base: "empty", Fixture: dig("f"), Digest: dig("d")},
		Profile: sandbox.ProfileDenyAll, ConfigDigest: boxed.Config, Limits: map[string]int64{"processes": 32}, CannotShow: []string{"x"},
	}
	if outcome != hostile.Qualified {
		r.Trials = []reports.Trial{{
			ID: "step-08/neighbour/plain", Step: 8, Attempt: "neighbour", Route: "plain", Job: "j", Expected: hostile.Refusal{Kind: hostile.EACCES, Place: hostile.FileOwnership},
			By: reports.ByClaim, Source: "s", Started: time.Now().UTC(), Verdict: hostile.Fell, Reason: "the neighbour's submission was read",
		}}
	}
	report, err := reports.Encode(r)
	must(w.t, err)
	s := attest.Statement{
		Run: r.Run, Outcome: outcome, Issued: time.Now(), Expires: time.Now().Add(time.Hour), Host: attest.StatementHost{BootID: r.Host.BootID, Kernel: r.Host.Kernel},
		RuntimeDigest: r.Runtime.Digest, ConfigDigest: r.ConfigDigest, ReportDigest: evidence.Digest(report), JUnitDigest: dig("junit"),
	}
	if outcome == hostile.Qualified {
		s.Capabilities, err = json.Marshal(sandbox.Capabilities{
			SchemaVersion: 1, Runtime: sandbox.RuntimeRunsc, RuntimeDigest: s.RuntimeDigest, Profile: sandbox.ProfileDenyAll, Qualification: s.Run,
			QualifiedUntil: s.Expires.UTC().Truncate(time.Second), Limits: sandbox.DenyAllLimits(),
		})
		must(w.t, err)
	}
	a, err := attest.Sign(s, w.key)
	must(w.t, err)
	data, err := a.Encode()
	must(w.t, err)
	write(w.t, filepath.Join(w.dir, "prepared", reports.ReportFile), string(report))
	write(w.t, filepath.Join(w.dir, "prepared", reports.AttestationFile), string(data))
}

// The outcome is that of the exit code, the report and the attestation together.
func TestChildEndsWithAnOutcome(t *testing.T) {
	for outcome, code := range map[hostile.Outcome]int{hostile.Qualified: 0, hostile.Refused: 1, hostile.Unproven: 3} {
		w := newWorkbench(t, fmt.Sprintf(`cp $prepared/* "$out"; exit %d`, code))
		w.prepare(outcome)
		q := w.request()
		res := w.child.Run(t.Context(), q)
		if res.Outcome != outcome || res.Trouble != "" || res.Statement == nil || res.Run == "" || res.Harness != boxed.Harness {
			t.Errorf("%s: %+v", outcome, res)
		}
		if why := res.qualifies(boxed); (why == "") != (outcome == hostile.Qualified) {
			t.Errorf("%s qualifies: %q", outcome, why)
		}
		if want := outcome != hostile.Qualified; (len(res.Walls) == 1) != want || want && res.Walls[0] != "step-08/neighbour/plain fell: the neighbour's submission was read" {
			t.Errorf("%s: walls %v", outcome, res.Walls)
		}
		if res.Folder != filepath.Join(w.child.Runs, q.ID) || !isFile(filepath.Join(res.Folder, reports.ReportFile)) || !isFile(filepath.Join(res.Folder, said)) {
			t.Errorf("folder %s", res.Folder)
		}
		args, err := os.ReadFile(res.Folder + ".tmp.args")
		if err != nil || string(args) != "run --config /runner.yaml --out "+res.Folder+".tmp --key /key --valid-for 1h0m0s --reason schedule: it is time --nice 0\n" {
			t.Errorf("called with %s, %v", args, err)
		}
	}
}

// Whatever else happens is unproven, and says why.
func TestChildIsNotBelieved(t *testing.T) {
	cases := map[string]struct {
		body string
		want string
	}{
		"usage":              {`exit 2`, "exit status 2: last words"},
		"killed":             {`kill -KILL $$`, "signal: killed: last words"},
		"panic":              {`exit 134`, "exit status 134"},
		"no files":           {`exit 0`, "report.json: no such file"},
		"no files, unproven": {`exit 3`, "there is no report: last words"},
		"its own reason":     {`printf '{"msg":"configuration"}\nharness: run: no room\n' >&2; exit 3`, "there is no report: harness: run: no room"},
		"another outcome":    {`cp $prepared/* "$out"; exit 1`, "its attestation says qualified"},
		"report changed":     {`cp $prepared/* "$out"; sed -i 's/"worker"/"x"/; s/"h"/"i"/' "$out/report.json"; exit 0`, "not the one that was attested"},
		"no attestation":     {`cp $prepared/report.json "$out"; exit 0`, "attestation.json: no such file"},
		"damaged":            {`cp $prepared/* "$out"; echo >>"$out/attestation.json"; exit 0`, "decode attestation"},
	}
	for name, c := range cases {
		w := newWorkbench(t, c.body)
		w.prepare(hostile.Qualified)
		res := w.child.Run(t.Context(), w.request())
		if res.Outcome != hostile.Unproven || !strings.Contains(res.Trouble, c.want) || res.Statement != nil || res.Folder == "" {
			t.Errorf("%s: %+v, want %q", name, res, c.want)
		}
	}
	w := newWorkbench(t, `cp $prepared/* "$out"; exit 0`)
	w.prepare(hostile.Qualified)
	w.child.Public, _, _ = ed25519.GenerateKey(nil)
	if res := w.child.Run(t.Context(), w.request()); !strings.Contains(res.Trouble, "not signed by a trusted key") {
		t.Errorf("another key: %+v", res)
	}
	w = newWorkbench(t, "")
	w.child.Program = "/no/such/harness"
	if res := w.child.Run(t.Context(), w.request()); !strings.Contains(res.Trouble, "no such file") {
		t.Errorf("no program: %+v", res)
	}
	must(t, os.RemoveAll(w.child.Runs))
	write(t, w.child.Runs, "")
	if res := w.child.Run(t.Context(), w.request()); !strings.Contains(res.Trouble, "make the run's folder") {
		t.Errorf("no folder: %+v", res)
	}
}

// A run that is told to end gets its time to clean up; one that takes too long
// is ended by its bound.
func TestChildIsEnded(t *testing.T) {
	const body = `trap 'echo cleaned >"$out/cleaned"; exit 130' TERM; touch "$out/ready"; while :; do sleep 0.05; done`
	w := newWorkbench(t, body)
	ctx, cancel := context.WithCancelCause(t.Context())
	q := w.request()
	ended := make(chan Result, 1)
	go func() { ended <- w.child.Run(ctx, q) }()
	waitFor(t, "the run", func() bool { return isFile(filepath.Join(w.child.Runs, q.ID+".tmp", "ready")) })
	cancel(errors.New("the daemon was told to end"))
	res := <-ended
	if !res.Stopped || res.Outcome != hostile.Unproven || !strings.Contains(res.Trouble, "the daemon was told to end") || !isFile(filepath.Join(res.Folder, "cleaned")) {
		t.Errorf("%+v", res)
	}
	if isFile(filepath.Join(w.child.Runs, childFile)) {
		t.Error("the child is still noted")
	}
	q = w.request()
	q.Within = 500 * time.Millisecond
	if res := w.child.Run(t.Context(), q); res.Stopped || !strings.Contains(res.Trouble, "not ended within 500ms") {
		t.Errorf("%+v", res)
	}
}

// One that does not end when it is told to is killed, with its group.
func TestChildThatDoesNotEndIsKilled(t *testing.T) {
	cmd := exec.Command("sh", "-c", `trap "" TERM; echo ready; while :; do sleep 0.05; done`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = out.Read(make([]byte, 6)) // it ignores the signal from here on
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done, said := make(chan struct{}), make(chan error, 1)
	go func() { said <- end(ctx, done, cmd.Process.Pid, 100*time.Millisecond) }()
	_ = cmd.Wait() // its state is looked at below
	close(done)
	if err := <-said; err == nil || !strings.Contains(err.Error(), "not ended within 100ms of SIGTERM: killed") {
		t.Error(err)
	}
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %s", cmd.ProcessState)
	}
}

// An earlier daemon's child is ended before anything else is begun, and what it
// had not finished goes.
func TestAnOrphanIsEnded(t *testing.T) {
	runs := t.TempDir()
	cmd := exec.Command("sleep", "300")
	must(t, cmd.Start())
	must(t, note(runs, cmd.Process.Pid))
	must(t, os.Mkdir(runs+"/watch_x.tmp", 0o755))
	must(t, os.Mkdir(runs+"/watch_w", 0o755))
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	must(t, endOrphan(t.Context(), runs))
	<-gone
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %s", cmd.ProcessState)
	}
	left, err := os.ReadDir(runs)
	if err != nil || len(left) != 1 || left[0].Name() != "watch_w" {
		t.Errorf("left %v, %v", left, err)
	}
	must(t, endOrphan(t.Context(), runs)) // nothing to do
}

// A number that another process has by now is left alone.
func TestAnotherProcessIsNotEnded(t *testing.T) {
	runs := t.TempDir()
	cmd := exec.Command("sleep", "300")
	must(t, cmd.Start())
	t.Cleanup(func() { must(t, cmd.Process.Kill()); _ = cmd.Wait() })
	waitFor(t, "sleep", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), "(sleep) S ")
	})
	boot, err := line("/proc/sys/kernel/random/boot_id")
	must(t, err)
	for _, n := range []noted{{cmd.Process.Pid, "1", boot}, {cmd.Process.Pid, "", "another boot"}, {1, "", boot}, {-1, "", boot}} {
		data, err := json.Marshal(n)
		must(t, err)
		write(t, filepath.Join(runs, childFile), string(data))
		must(t, endOrphan(t.Context(), runs))
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid)); err != nil || !strings.Contains(string(stat), ") S ") {
		t.Errorf("it was ended: %s, %v", stat, err)
	}
}
