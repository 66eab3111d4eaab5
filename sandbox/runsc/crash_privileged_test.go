//go:build privileged

package runsc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

// atPayload is when the job's own program runs, which is no stage of a probe.
const atPayload Stage = "payload"

// TestCrash kills a runner in the middle of a job, with the job's processes,
// cgroups and mounts standing. What runs of the job ends by itself, in moments
// and without a next start; the next start removes the rest and tells the truth.
func TestCrash(t *testing.T) {
	if dir := os.Getenv("TENWALLS_CRASH_DIR"); dir != "" {
		crashingRunner(t, dir)
	}
	for _, at := range []Stage{StagePlaced, StageStarted, atPayload} {
		t.Run(string(at), func(t *testing.T) {
			b := newBench(t, unhurried)
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			job, began := b.crash(t, at)
			if _, err := os.Stat(b.cfg.StateDir + "/jobs/" + string(job)); err != nil {
				t.Fatalf("the crash left nothing, so this shows nothing: %v", err)
			}
			b.endsByItself(t, job, began)
			b.reopen(t)
			st, err := b.Inspect(t.Context(), job)
			if err != nil || st.State != sandbox.StateFailed {
				t.Fatalf("state %s, %v", st.State, err)
			}
			res, err := b.Collect(t.Context(), job)
			if err != nil || Reason(res.Reason) != ReasonLost {
				t.Errorf("reason %s, %v", res.Reason, err)
			}
			b.nothingLeft(t, st.Receipt.Job)
			if again, err := b.Submit(t.Context(), st.Receipt.Job); err != nil || again.Job.ID != job {
				t.Errorf("submitted again: %v", err)
			}
			if st, err := b.Wait(t.Context(), job); err != nil || st.State != sandbox.StateFailed {
				t.Errorf("a lost job ran again: %s, %v", st.State, err)
			}
		})
	}
}

// unhurried lets a job wait to be killed with its runner: no cap ends it before,
// also where a start takes its time.
func unhurried(c *Config) {
	c.Limits.CPU, c.Limits.Wall = Duration(10*time.Minute), Duration(10*time.Minute)
}

// crash starts a runner that starts a job, kills it when the job is that far,
// and returns when it is dead, with the moment of the kill.
func (b *bench) crash(t *testing.T, at Stage) (id.ID, time.Time) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestCrash$")
	cmd.Env = append(os.Environ(), "TENWALLS_CRASH_DIR="+b.cfg.StateDir, "TENWALLS_CRASH_AT="+string(at),
		"TENWALLS_CRASH_CGROUP="+b.cfg.CgroupParent, "TENWALLS_CRASH_IMAGES="+b.cfg.ImageStore,
		"TMPDIR="+t.TempDir()) // it cannot remove its own
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the runner to kill: %v, %v", err, cmd.Wait())
	}
	job := id.ID(strings.TrimSpace(said))
	if at == atPayload {
		b.hasAll(t, job)
	}
	began := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return job, began
}

// hasAll checks that what is to end is there: command, gofer, sandbox, and
// whatever the platform runs the payload in.
func (b *bench) hasAll(t *testing.T, job id.ID) {
	t.Helper()
	pids := b.procs(t, job)
	var all []string
	for _, pid := range pids {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Errorf("process %d ended before the runner did: %v", pid, err)
		}
		name, _, _ := strings.Cut(string(line), "\x00")
		all = append(all, filepath.Base(name))
	}
	words := strings.Join(all, " ")
	if len(pids) < 4 || !strings.Contains(words, "runsc-gofer") || !strings.Contains(words, "runsc-sandbox") {
		t.Errorf("the job's cgroup holds %q: command, gofer, sandbox and stubs are wanted", words)
	}
}

func (b *bench) procs(t *testing.T, job id.ID) []int {
	t.Helper()
	g, err := b.cgroups.Open(b.cfg.CgroupParent + "/" + string(job))
	if err != nil {
		t.Fatal(err)
	}
	pids, err := g.Procs()
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

// endsByItself waits, 2 s at the most, until nothing of the job runs. No runner
// is open meanwhile.
func (b *bench) endsByItself(t *testing.T, job id.ID, began time.Time) {
	t.Helper()
	for {
		pids := b.procs(t, job)
		took := time.Since(began)
		if len(pids) == 0 {
			t.Logf("nothing runs %v after the kill", took)
			return
		}
		if took > 2*time.Second {
			t.Errorf("%d processes of the job run on: %v", len(pids), pids)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// crashingRunner says the id of its job once that stands where it was asked,
// and then waits to be killed.
func crashingRunner(t *testing.T, dir string) {
	b := newBench(t, func(c *Config) {
		c.StateDir, c.CgroupParent = dir, os.Getenv("TENWALLS_CRASH_CGROUP")
		c.ImageStore = os.Getenv("TENWALLS_CRASH_IMAGES")
		unhurried(c)
	})
	job := b.job(t, nil, "sleep", "/scratch/runs")
	at := Stage(os.Getenv("TENWALLS_CRASH_AT"))
	traces := make(chan Traces, 1)
	_, err := b.SubmitProbe(t.Context(), job, Probe{At: func(s Stage, tr Traces) {
		switch {
		case s == at:
			os.Stdout.WriteString(string(job.ID) + "\n")
			time.Sleep(time.Hour) // an empty select may be told as a deadlock
		case s == StageStarted:
			traces <- tr
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if at == atPayload {
		runs := filepath.Join((<-traces).Scratch, "runs")
		ended := make(chan error, 1)
		go func() { _, err := b.Wait(t.Context(), job.ID); ended <- err }()
		for tick := time.Tick(time.Millisecond); ; {
			if _, err := os.Stat(runs); err == nil {
				break
			}
			select {
			case <-tick:
			case err := <-ended:
				res, _ := b.Collect(t.Context(), job.ID)
				words, _, _ := b.Detail(job.ID)
				fmt.Fprintf(os.Stderr, "the job ended before its program ran: %v, %s %s %s\n", err, res.Reason, words, res.Stderr)
				os.Exit(1)
			}
		}
		os.Stdout.WriteString(string(job.ID) + "\n")
	}
	time.Sleep(time.Hour)
}
