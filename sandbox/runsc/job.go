package runsc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
)

// execution is one job while it runs.
type execution struct {
	r      *Runner
	job    sandbox.Job
	probe  Probe
	walls  Walls
	rec    record
	dirs   jobDirs
	group  *cgroup.Group
	traces Traces
	end    *ending
	out    *output
	cmd    *exec.Cmd
	said   error         // what the runtime's command returned
	stored chan struct{} // closed when the result is stored
}

// verdict is how an execution ended.
type verdict struct {
	reason    Reason
	exit      int
	detail    string
	log       string
	artifacts []evidence.Ref
	clean     bool // nothing of the job is left
}

// fail makes the verdict one about the runner, which could not end the job or
// remove it. What it would have been otherwise goes into the detail.
func (v *verdict) fail(err error) {
	words := []string{v.detail, err.Error()}
	if v.reason != ReasonTeardown {
		words = append([]string{"instead of " + string(v.reason)}, words...)
	}
	v.detail = strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "; ")
	v.reason = ReasonTeardown
}

// run takes the job from accepted to a terminal state. Whatever happens on the
// way, what it created is removed before the result is stored.
func (x *execution) run() {
	v := x.attempt()
	err := x.teardown()
	if v.clean = err == nil; err != nil {
		v.fail(err)
	}
	if err := x.r.finish(x.job, v, x.out); err != nil {
		x.r.log.Error("store result", "job", x.job.ID, "error", err)
	}
	x.probe.at(StageStored, x.traces)
	close(x.stored)
}

func (x *execution) attempt() verdict {
	if err := x.place(); err != nil {
		var bad inputError
		if errors.As(err, &bad) {
			return verdict{reason: ReasonInput, detail: err.Error()}
		}
		return verdict{reason: ReasonStart, detail: err.Error()}
	}
	x.probe.at(StagePlaced, x.traces)
	if _, err := x.r.store.change(x.job.ID, x.r.now(), func(r *record) error {
		r.Status.State = sandbox.StateRunning
		return nil
	}); err != nil {
		return verdict{reason: ReasonStart, detail: err.Error()}
	}
	v := x.execute()
	x.probe.at(StageEnded, x.traces)
	if v.reason == ReasonExited {
		x.capture(&v)
	}
	return v
}

// place makes what the job stands in. The record that names it is on the disk
// already.
func (x *execution) place() error {
	if err := x.dirs.make(); err != nil {
		return err
	}
	if err := x.mountScratch(); err != nil {
		return err
	}
	if err := x.fetchInputs(); err != nil {
		return err
	}
	rootfs, err := x.r.opt.Resolve(x.job.Image)
	if err != nil {
		return fmt.Errorf("image %s: %w", x.job.Image, err)
	}
	if err := x.order(rootfs); err != nil {
		return err
	}
	x.group, err = x.r.cgroups.Create(x.rec.Cgroup, cgroup.Limits{
		MemoryBytes: x.walls.Memory, SwapBytes: x.walls.Swap, PIDs: x.walls.HostTasks,
	})
	if err != nil {
		return err
	}
	x.traces.Image = rootfs
	x.traces.Grants = []string{rootfs, x.dirs.scratch}
	if len(x.job.Inputs) > 0 {
		x.traces.Inputs = x.dirs.inputs
		x.traces.Grants = append(x.traces.Grants, x.traces.Inputs)
	}
	return nil
}

// order writes the job's bundle, and notes all that the runtime is ordered.
func (x *execution) order(rootfs string) (err error) {
	spec := x.walls.spec(x.job, rootfs, x.dirs)
	x.traces.Flags, x.traces.Bundle = x.flags(), x.dirs.bundle
	if x.traces.Config, err = json.Marshal(spec); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	if x.walls.UnsaidSpec != nil {
		x.walls.UnsaidSpec(spec)
	}
	return writeBundle(x.dirs.bundle, spec)
}

// mountScratch mounts the job's one writable folder: a tmpfs of the granted
// size, owned by the job's identity. Its pages are charged to the job's memory
// cgroup, as whoever touches them first is in it (tmpfs(5)).
func (x *execution) mountScratch() error {
	w := x.walls
	if w.ScratchFolder {
		if err := os.Chown(x.dirs.scratch, int(w.UID), int(w.GID)); err != nil {
			return fmt.Errorf("make scratch: %w", err)
		}
		return nil
	}
	opts := fmt.Sprintf("mode=0700,uid=%d,gid=%d", w.UID, w.GID)
	if w.Scratch > 0 {
		// One inode a page: files without bytes cost kernel memory as well.
		opts += fmt.Sprintf(",size=%d,nr_inodes=%d", w.Scratch, w.Scratch/4096+16)
	}
	if err := unix.Mount("tenwalls-scratch", x.dirs.scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, opts); err != nil {
		return fmt.Errorf("mount scratch %s: %w", x.dirs.scratch, err)
	}
	return nil
}

// execute runs the runtime inside the job's cgroup until the job ends or has
// to, and returns when no process of the job is left.
func (x *execution) execute() verdict {
	x.out = newOutput(x.walls.Output, func() { x.end.because(ReasonOutput) })
	stdout, err := x.out.pipe(&x.out.stdout)
	if err != nil {
		return verdict{reason: ReasonStart, detail: err.Error()}
	}
	stderr, err := x.out.pipe(&x.out.stderr)
	if err != nil {
		return verdict{reason: ReasonStart, detail: errors.Join(err, stdout.Close()).Error()}
	}
	x.cmd = x.command()
	x.cmd.Stdout, x.cmd.Stderr = stdout, stderr
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	began := time.Now()
	// Tied, so that the kernel ends the command with the runner, and by it the
	// rest: runsc ties its gofer and its sandbox to the command in the same
	// way, and its platforms tie their stubs to the sandbox.
	untie, err := x.group.StartTied(x.beforeStart, x.cmd)
	closed := errors.Join(stdout.Close(), stderr.Close())
	if err != nil {
		return verdict{reason: ReasonStart, detail: errors.Join(err, closed).Error()}
	}
	x.traces.PID = x.cmd.Process.Pid
	x.probe.at(StageStarted, x.traces)
	go watchCaps(ctx, x.walls.bounded(x.r.cfg.startGrace()), x.group, x.end)
	exited := make(chan struct{})
	go func() {
		x.said = x.cmd.Wait()
		untie()
		close(exited)
	}()
	select {
	case <-exited:
	case <-x.end.done:
	}
	x.r.log.Debug("job ends", "job", x.job.ID, "after", time.Since(began))
	if x.probe.keeps(KeepProcesses) {
		select {
		case <-exited:
			return x.judge(nil)
		default: // it lives on, so there is no state of its end to look at
			return verdict{reason: x.end.reason, exit: 128 + int(unix.SIGKILL)}
		}
	}
	return x.judge(x.killAll(exited))
}

// killAll ends every process of the job and waits until they are gone.
func (x *execution) killAll(exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), x.r.within)
	defer cancel()
	if err := x.group.Kill(ctx); err != nil {
		return fmt.Errorf("end the job's processes: %w", err)
	}
	select {
	case <-exited:
	case <-ctx.Done():
		return errors.New("end the job's processes: the runtime's command did not end")
	}
	return x.out.wait(ctx)
}

// judge names the reason. A cap that fired first is the reason, also when the
// program ended in the same moment. When the job could not be ended, that is
// the reason: what still runs, or still prints, has neither exited nor been
// ended by a cap, and nothing more is asked of it.
func (x *execution) judge(killed error) verdict {
	v := verdict{reason: ReasonExited, exit: 128 + int(unix.SIGKILL)}
	capped := false
	select {
	case <-x.end.done:
		v.reason, capped = x.end.reason, true
	default:
	}
	if killed != nil {
		v.fail(killed)
		return v
	}
	if code := x.cmd.ProcessState.ExitCode(); code >= 0 {
		v.exit = code
	}
	if capped {
		return v
	}
	if n, err := x.group.OOMKills(); err == nil && n > 0 {
		v.reason = ReasonMemory
		return v
	}
	why, err := startFailure(x.dirs.errorLog())
	switch {
	case err != nil:
		v.reason, v.detail = ReasonRuntime, err.Error()
	case why != "":
		v.reason, v.detail = ReasonStart, why
		if x.started() && !strings.Contains(why, "starting container") {
			v.reason = ReasonRuntime
		}
	case x.cmd.ProcessState.ExitCode() < 0:
		v.reason, v.detail = ReasonRuntime, "the runtime's command was ended by a signal: "+x.cmd.ProcessState.String()
	case !x.started(): // whatever it exited with, no program of the job did
		v.reason = ReasonStart
		v.detail = fmt.Sprintf("the runtime made no container and exited with %d: %s", v.exit, lastWords(x.out.stderr))
	}
	if v.reason == ReasonStart || v.reason == ReasonRuntime {
		v.log, err = keepLogs(x.dirs.logs, x.r.opt.Logs, string(x.job.ID), x.out.stderr)
		if err != nil {
			v.detail += "; " + err.Error()
		}
	}
	return v
}

// started tells whether runsc got as far as making the container: it writes
// the pid file after that and before the program starts.
func (x *execution) started() bool {
	_, err := os.Stat(filepath.Join(x.dirs.root, pidFile))
	return err == nil
}

const pidFile = "init.pid"

// flags are the runtime's, before its command.
func (x *execution) flags() []string {
	flags := []string{
		"--root=" + x.dirs.root,
		"--platform=" + x.r.cfg.Runtime.Platform,
		"--network=" + x.walls.Network,
		"--ignore-cgroups", // the runner's own cgroup holds the whole runtime from its first instruction on
		"--debug-log=" + x.dirs.logs + "/",
		"--log=" + x.dirs.errorLog(),
		"--log-format=json",
	}
	if x.walls.Filter != nil {
		flags = append(flags, "--oci-seccomp")
	}
	if x.walls.SetUID {
		flags = append(flags, "--allow-suid")
	}
	if x.walls.RootOverlay != "" {
		flags = append(flags, "--overlay2="+x.walls.RootOverlay)
	}
	return append(flags, x.r.cfg.Runtime.Flags...)
}

// command is the call of the runtime. Its environment is empty but for PATH:
// nothing of the runner's own may reach the job.
func (x *execution) command() *exec.Cmd {
	args := slices.Concat(x.traces.Flags, x.walls.UnsaidFlags,
		[]string{"run", "--bundle=" + x.traces.Bundle, "--pid-file=" + filepath.Join(x.dirs.root, pidFile), x.traces.Container})
	cmd := exec.Command(x.r.cfg.Runtime.Path, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Dir = x.dirs.bundle
	return cmd
}

// enterLaunchNS makes the thread that starts the runtime join the probe's
// network namespace (setns(2)).
func (x *execution) enterLaunchNS() error {
	if x.probe.LaunchNS == "" {
		return nil
	}
	f, err := os.Open(x.probe.LaunchNS)
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", x.probe.LaunchNS, err)
	}
	return nil
}

// beforeStart runs on the thread that makes the job's command, and on no other:
// what it changes of the thread the job inherits.
func (x *execution) beforeStart() error {
	if x.r.opt.Nice > 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), x.r.opt.Nice); err != nil {
			return fmt.Errorf("set the nice value: %w", err)
		}
	}
	return x.enterLaunchNS()
}
