// Package act lets the program start itself again as a small helper process:
// the processes that controls need, and a runner that is there to be killed.
//
// What this package does not prove: that a process started so has any wall
// around it. It is the harness's own, and trusted.
package act

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"

	"tenwalls.dev/harness/observers"
)

// word marks a call of the program as one of an act. It is not a subcommand
// that a person would type.
const word = "__act"

var acts = map[string]func(args []string) int{}

// Register adds an act beside those of package observers. It panics on a
// duplicate.
func Register(name string, f func(args []string) int) {
	if acts[name] != nil {
		panic("act: " + name + " is registered already")
	}
	acts[name] = f
}

// Main performs the act and ends the process when the program was called for
// one, and returns otherwise. It comes first in main and in TestMain.
func Main() {
	if len(os.Args) < 3 || os.Args[1] != word {
		return
	}
	if f := acts[os.Args[2]]; f != nil {
		os.Exit(f(os.Args[3:]))
	}
	runtime.GOMAXPROCS(1)
	os.Exit(observers.Act(os.Args[2]))
}

// Command is a call of this program for an act. Whoever starts it places it in
// a cgroup of the run's, so that it goes with the run even after a crash.
func Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", slices.Concat([]string{word, name}, args)...)
	cmd.Env = []string{"GOGC=off", "GOMAXPROCS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// Spawner starts the processes of controls inside cgroups of the run.
type Spawner struct {
	Host    observers.Host
	Default string // cgroup of children that ask for none; everything in it goes with the run
}

// Spawn starts one child.
func (s Spawner) Spawn(ctx context.Context, c observers.Child) (*os.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := Command(c.Act, c.Args...)
	if c.Name != "" {
		cmd.Args[0] = c.Name
	}
	if c.Stdio != nil {
		cmd.Stdin = c.Stdio
	}
	group := c.Cgroup
	if group == "" {
		group = s.Default
	}
	if err := observers.StartInCgroup(s.Host, group, cmd); err != nil {
		return nil, fmt.Errorf("start %s for a control: %w", c.Act, err)
	}
	return cmd.Process, nil
}
