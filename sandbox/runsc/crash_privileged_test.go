//go:build privileged

package runsc

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

// TestCrash kills a runner in the middle of a job, with the job's processes,
// cgroups and mounts standing, and opens its state again.
func TestCrash(t *testing.T) {
	if dir := os.Getenv("TENWALLS_CRASH_DIR"); dir != "" {
		crashingRunner(t, dir)
	}
	for _, at := range []Stage{StagePlaced, StageStarted} {
		t.Run(string(at), func(t *testing.T) {
			b := newBench(t, nil)
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestCrash$")
			cmd.Env = append(os.Environ(), "TENWALLS_CRASH_DIR="+b.cfg.StateDir, "TENWALLS_CRASH_AT="+string(at),
				"TENWALLS_CRASH_CGROUP="+b.cfg.CgroupParent, "TENWALLS_CRASH_IMAGES="+b.cfg.ImageStore)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said, err := bufio.NewReader(out).ReadString('\n')
			if killed := cmd.Process.Kill(); err != nil || killed != nil {
				t.Fatalf("%q %v %v", said, err, killed)
			}
			_ = cmd.Wait()
			job := id.ID(strings.TrimSpace(said))
			if _, err := os.Stat(b.cfg.StateDir + "/jobs/" + string(job)); err != nil {
				t.Fatalf("the crash left nothing, so this shows nothing: %v", err)
			}
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

// crashingRunner says the id of its job once that stands at the asked stage,
// and then waits to be killed.
func crashingRunner(t *testing.T, dir string) {
	b := newBench(t, func(c *Config) {
		c.StateDir, c.CgroupParent = dir, os.Getenv("TENWALLS_CRASH_CGROUP")
		c.ImageStore = os.Getenv("TENWALLS_CRASH_IMAGES")
	})
	job := b.job(t, nil, "sleep")
	_, err := b.SubmitProbe(t.Context(), job, Probe{At: func(s Stage, _ Traces) {
		if string(s) == os.Getenv("TENWALLS_CRASH_AT") {
			os.Stdout.WriteString(string(job.ID) + "\n")
			select {}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	select {}
}
