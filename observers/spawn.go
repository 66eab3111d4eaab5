package observers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/cgroup"
)

// The acts that controls need a process for. [Act] performs them.
const (
	ActSpin  = "spin"  // burn 20 ms of processor time, start included, then exit
	ActHog   = "hog"   // allocate and touch memory until killed
	ActHold  = "hold"  // allocate and touch 8 MiB, then block until killed
	ActSleep = "sleep" // block until killed
	ActEcho  = "echo"  // send back each byte that arrives on descriptor 0, until its end

	ActNothing = "nothing" // exit at once
)

// Child says what process a control needs.
type Child struct {
	Cgroup string   // where it is from its first instruction; empty leaves it where the harness is
	Act    string   // one of the Act words
	Name   string   // what its command line begins with; empty leaves the program's own path
	Args   []string // end its command line, for whoever looks at it; to the child they mean nothing
	Stdio  *os.File // its descriptor 0; nil is the null device
}

// Spawner starts the processes of controls. This package runs no programs, so
// whoever wires it does, by starting itself again so that [Act] gets called,
// and placing the child with [StartInCgroup].
type Spawner interface {
	// Spawn starts the child; the caller kills it and waits for it. ctx
	// bounds the starting only.
	Spawn(ctx context.Context, c Child) (*os.Process, error)
}

// StartInCgroup starts cmd as a member of the cgroup at path, which must be
// there, from its first instruction; an empty path starts it where the caller
// is.
func StartInCgroup(h Host, path string, cmd *exec.Cmd) error {
	if path == "" {
		return cmd.Start()
	}
	tree, err := cgroup.Detect(h.Cgroup)
	if err != nil {
		return err
	}
	g, err := tree.Open(path)
	if err != nil {
		return err
	}
	return g.Start(cmd)
}

// Act performs one act in a child and returns its exit code: 0, 1 when the act
// failed, 2 for a word that is not an act.
func Act(word string) int {
	switch word {
	case ActSpin:
		return spin(20 * time.Millisecond)
	case ActHog:
		for {
			touch(1 << 20)
		}
	case ActHold:
		touch(8 << 20)
		block()
	case ActSleep:
		block()
	case ActEcho:
		return echo(0)
	case ActNothing:
		return 0
	}
	return 2
}

func spin(d time.Duration) int {
	for {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			return 1
		}
		if time.Duration(u.Utime.Nano()+u.Stime.Nano()) >= d {
			return 0
		}
	}
}

// touch maps memory outside the Go heap, so that the collector neither moves
// the amount nor gives it back. It panics where the kernel gives none.
func touch(n int) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
	for i := 0; i < n; i += 4096 {
		m[i] = 1
	}
}

// block waits for ever; an empty select would end as a deadlock.
func block() {
	for {
		_ = unix.Pause()
	}
}

func echo(fd int) int {
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 1
		case n == 0:
			return 0
		}
		if _, err := unix.Write(fd, b[:]); err != nil {
			return 1
		}
	}
}

// throwaways numbers the groups of this process's controls.
var throwaways atomic.Int64

// throwaway makes a group for one control below the run's prefix. Its end
// kills what is inside, removes it, and joins what failed to *err.
func throwaway(ctx context.Context, h Host, prefix, observer string, l cgroup.Limits) (g *cgroup.Group, end func(*error), err error) {
	tree, err := cgroup.Detect(h.Cgroup)
	if err != nil {
		return nil, nil, err
	}
	g, err = tree.Create(fmt.Sprintf("%s/control-%s-%d-%d", prefix, observer, os.Getpid(), throwaways.Add(1)), l)
	if err != nil {
		return nil, nil, err
	}
	return g, func(err *error) { *err = errors.Join(*err, clearGroup(ctx, g)) }, nil
}

// clearWithin bounds the end of a throwaway group. It is awaited, so that only a
// group that cannot be ended takes so long, on a machine however slow.
const clearWithin = 30 * time.Second

// clearGroup gets its own time when ctx is over: what was made goes anyway.
func clearGroup(ctx context.Context, g *cgroup.Group) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearWithin)
	defer cancel()
	return errors.Join(g.Kill(ctx), g.Remove(ctx))
}

// reap kills a child and waits for it.
func reap(p *os.Process) {
	_ = p.Kill() // it may have ended by itself
	_, _ = p.Wait()
}

// waitChild waits for a child to end by itself, and reaps it when ctx ends first.
func waitChild(ctx context.Context, p *os.Process) (*os.ProcessState, error) {
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	defer stop()
	s, err := p.Wait()
	return s, errors.Join(err, ctx.Err())
}

// until calls ready every other millisecond until it is true or ctx ends. The
// kernel gives no event for the numbers that it is used on.
func until(ctx context.Context, ready func() bool) bool {
	for {
		if ready() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
}
