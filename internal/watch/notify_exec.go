package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ExecHook delivers a notice to a program, as JSON on its standard input. It has
// to end with 0 and take no longer than 30 s; then it is killed with whatever it
// started in its process group. What it leaves running when it ends is its own.
type ExecHook struct {
	Argv []string
}

// Name implements [Messenger].
func (h ExecHook) Name() string { return "exec " + h.Argv[0] }

// Deliver implements [Messenger].
func (h ExecHook) Deliver(ctx context.Context, notice []byte) error {
	cmd := exec.CommandContext(ctx, h.Argv[0], h.Argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdin = bytes.NewReader(notice)
	var out head
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it ended with 0, and left something of its own behind that holds its output
	}
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("killed: %w", context.Cause(ctx))
		}
		return fmt.Errorf("%s: %w: %s", h.Name(), err, brief(out.String()))
	}
	return nil
}

// head keeps the first bytes of what a program says.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, maxBrief-h.Len()))])
	return len(p), nil
}
