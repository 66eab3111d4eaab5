package observers

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// actVar makes the test binary perform an act, as the harness's own hidden
// subcommand does.
const actVar = "TENWALLS_TEST_ACT"

func TestMain(m *testing.M) {
	if act := os.Getenv(actVar); act != "" {
		os.Exit(Act(act))
	}
	os.Exit(m.Run())
}

// reexec is a Spawner that starts the test binary again.
type reexec struct{ host Host }

func (r reexec) Spawn(_ context.Context, c Child) (*os.Process, error) {
	cmd := exec.Command("/proc/self/exe", c.Args...)
	if c.Name != "" {
		cmd.Args[0] = c.Name
	}
	cmd.Env = []string{actVar + "=" + c.Act}
	if c.Stdio != nil {
		cmd.Stdin = c.Stdio
	}
	if err := StartInCgroup(r.host, c.Cgroup, cmd); err != nil {
		return nil, err
	}
	return cmd.Process, nil
}
