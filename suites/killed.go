package suites

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
)

// killedRunner is the child that runs a runner to be killed.
type killedRunner struct {
	cmd     *exec.Cmd
	says    *json.Decoder
	proceed io.WriteCloser
	ended   bool

	complaint bytes.Buffer // what it says on standard error; it is the harness's own, and brief
}

func (s *sitting) startRunner(o runnerOrder) (*killedRunner, error) {
	if err := os.MkdirAll(o.Config.StateDir, 0o711); err != nil {
		return nil, fmt.Errorf("start a runner to kill: %w", err)
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("start a runner to kill: %w", err)
	}
	file := filepath.Join(s.scene.dir, "killed.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, fmt.Errorf("start a runner to kill: %w", err)
	}
	k := &killedRunner{cmd: act.Command(runnerAct, file)}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if k.proceed, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	k.cmd.Stderr = &k.complaint
	k.says = json.NewDecoder(out)
	if err := observers.StartInCgroup(s.eyes.host, s.scene.helpers(), k.cmd); err != nil {
		return nil, fmt.Errorf("start a runner to kill: %w", err)
	}
	return k, nil
}

// follow takes the job through placed and started.
func (k *killedRunner) follow(ctx context.Context, s *sitting) error {
	stop := context.AfterFunc(ctx, func() { _ = k.cmd.Process.Kill() })
	defer stop()
	for _, stage := range []runsc.Stage{runsc.StagePlaced, runsc.StageStarted} {
		var t runsc.Traces
		if err := k.says.Decode(&t); err != nil {
			_ = k.kill() // its standard error is complete then
			return fmt.Errorf("the runner to kill did not get as far as %s: %w %s", stage, err, k.complaint.String())
		}
		s.at(ctx)(stage, t)
		if stage == runsc.StagePlaced {
			if _, err := k.proceed.Write([]byte{'\n'}); err != nil {
				return fmt.Errorf("the runner to kill: %w", err)
			}
		}
	}
	return nil
}

// kill sends SIGKILL, which nothing can prepare for, and waits for the death.
func (k *killedRunner) kill() error {
	if err := k.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill the runner: %w", err)
	}
	_ = k.cmd.Wait()
	k.ended = true
	return nil
}

// end is for every way out before the kill.
func (k *killedRunner) end() {
	if !k.ended {
		_ = k.kill()
	}
	_ = k.proceed.Close()
}

// imageAt is an image that is mounted already.
func imageAt(digest, root string) *fixtures.Image { return &fixtures.Image{Digest: digest, Root: root} }
