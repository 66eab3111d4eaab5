package watch

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox/evidence"
)

// Child is the suite as a process of its own: harness run. Only the files that it
// leaves and its exit code count; what it prints is kept and not read.
type Child struct {
	Program string // the harness on the disk
	Runs    string // folder that gets one folder a run
	Key     string // private key that signs the attestation
	Public  ed25519.PublicKey
	Compare Comparison // nil: none
	Nice    int        // of the child, which enforces the caps of its jobs: those get Share.Nice
	Log     *slog.Logger
}

// Comparison compares a report with that of the last good run before it, under
// the state folder of that runner configuration; nil when there is none.
type Comparison func(runner string, r *reports.Report) (*reports.Difference, error)

// outBecomes tells the child what its folder is renamed to when it has ended, for
// what it notes in the history.
const outBecomes = "TENWALLS_OUT_BECOMES"

// said is the child's standard error beside the files of its run.
const said = "stderr.log"

// endWithin is how long a child may take to remove what its run made after it
// was told to end.
const endWithin = 45 * time.Second

// Run implements [Suite].
func (c *Child) Run(ctx context.Context, r Request) Result {
	began := filepath.Join(c.Runs, r.ID+".tmp")
	done := filepath.Join(c.Runs, r.ID)
	res := c.run(ctx, r, began, done)
	res.Ended = time.Now()
	if err := os.Rename(began, done); err != nil {
		res.Outcome, res.Statement = hostile.Unproven, nil
		res.Trouble = brief(errors.Join(errors.New(res.Trouble), fmt.Errorf("keep the run's folder: %w", err)).Error())
		return res
	}
	res.Folder = done
	return res
}

func (c *Child) run(ctx context.Context, r Request, dir, done string) Result {
	pid := 0
	broken := func(err error) Result {
		return Result{Outcome: hostile.Unproven, Trouble: brief(err.Error()), PID: pid}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return broken(fmt.Errorf("make the run's folder: %w", err))
	}
	stderr, err := os.OpenFile(filepath.Join(dir, said), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return broken(fmt.Errorf("make the run's folder: %w", err))
	}
	defer stderr.Close() // what the child wrote is its own; we only read
	ctx, cancel := context.WithTimeoutCause(ctx, r.Within, fmt.Errorf("not ended within %s (run_within)", r.Within))
	defer cancel()
	cmd := exec.Command(c.Program, "run", "--config", r.Runner, "--out", dir, "--key", c.Key, "--valid-for", r.ValidFor.String(), "--reason", r.Noted(), "--nice", strconv.Itoa(max(c.Nice, r.Share.Nice)))
	cmd.Dir, cmd.Stderr = "/", stderr
	cmd.Env = append(os.Environ(), "CI=1", outBecomes+"="+done) // CI: plain lines, whatever our own standard error is
	state, err := c.watched(ctx, cmd, r)
	if cmd.Process != nil {
		pid = cmd.Process.Pid
	}
	if err != nil {
		return broken(err)
	}
	if ctx.Err() != nil {
		res := broken(fmt.Errorf("ended early: %w", context.Cause(ctx)))
		res.Stopped = !errors.Is(ctx.Err(), context.DeadlineExceeded)
		return res
	}
	outcome, ok := map[int]hostile.Outcome{0: hostile.Qualified, 1: hostile.Refused, 3: hostile.Unproven}[state.ExitCode()]
	if !ok {
		return broken(fmt.Errorf("harness run: %s: %s", state, tail(stderr)))
	}
	res, err := c.read(dir, outcome)
	if err != nil {
		return broken(fmt.Errorf("harness run: %s, but %w: %s", state, err, tail(stderr)))
	}
	res.PID = pid
	if c.Compare != nil {
		if res.Drift, err = c.Compare(r.Runner, res.Report); err != nil {
			res.NotCompared = brief(err.Error())
		}
	}
	return res
}

// watched starts the child, ends it with the context and waits for it. The
// thread that starts it stays until it has ended, because the kernel sends the
// parent-death signal when that thread ends (prctl(2), PR_SET_PDEATHSIG): a child
// whose daemon was killed is told to end, and cleans up.
func (c *Child) watched(ctx context.Context, cmd *exec.Cmd, r Request) (*os.ProcessState, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Its own group, so that a signal from a terminal reaches it through us alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := c.start(cmd); err != nil {
		return nil, fmt.Errorf("start harness run: %w", err)
	}
	pid := cmd.Process.Pid
	unbound, err := r.Share.bound(cgroupRoot, boundGroup(c.Runs), pid)
	if err != nil {
		c.Log.Warn("the child runs without its bound of processor time", "run", r.ID, "why", err.Error())
	}
	noted := note(c.Runs, pid)
	done := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- end(ctx, done, pid, endWithin) }()
	waited := cmd.Wait()
	close(done)
	err = errors.Join(noted, <-ended, forget(c.Runs), unbound())
	var exit *exec.ExitError
	if waited != nil && !errors.As(waited, &exit) {
		err = errors.Join(fmt.Errorf("wait for harness run: %w", waited), err)
		return nil, err
	}
	if err != nil {
		c.Log.Warn("after the child", "run", r.ID, "why", err.Error())
	}
	return cmd.ProcessState, nil
}

// start starts the child with its own nice value, which is that of the thread
// that makes it. A suite that is starved enforces its caps late, and calls fallen
// what stands.
func (c *Child) start(cmd *exec.Cmd) (err error) {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	if own = 20 - own; own == c.Nice { // the system call's own form
		return cmd.Start()
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, c.Nice); err != nil {
		c.Log.Warn("the suite runs as nice as the daemon: on a busy host its caps come late", "why", err.Error())
		return cmd.Start()
	}
	defer func() { err = errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, 0, own)) }()
	return cmd.Start()
}

// end tells the child's group to end when ctx is done, and kills it when it has
// not ended in time. It returns when done is closed.
func end(ctx context.Context, done <-chan struct{}, pid int, within time.Duration) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	err := signal(-pid, unix.SIGTERM)
	patience := time.NewTimer(within)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		err = errors.Join(err, fmt.Errorf("not ended within %s of SIGTERM: killed; the next run removes what it left", within), signal(-pid, unix.SIGKILL))
		<-done
	}
	return err
}

func signal(pid int, s unix.Signal) error {
	if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%s to %d: %w", unix.SignalName(s), pid, err)
	}
	return nil
}

// read is the result as its files tell it. Nothing is believed that our own key
// did not sign.
func (c *Child) read(dir string, outcome hostile.Outcome) (Result, error) {
	report, err := os.ReadFile(filepath.Join(dir, reports.ReportFile))
	if errors.Is(err, fs.ErrNotExist) && outcome == hostile.Unproven {
		return Result{}, errors.New("there is no report")
	}
	if err != nil {
		return Result{}, err
	}
	data, err := os.ReadFile(filepath.Join(dir, reports.AttestationFile))
	if err != nil {
		return Result{}, err
	}
	a, err := attest.DecodeAttestation(data)
	if err != nil {
		return Result{}, err
	}
	s, err := attest.Verify(a, []ed25519.PublicKey{c.Public}, time.Now())
	if err != nil {
		return Result{}, err
	}
	r, err := reports.Decode(report)
	if err != nil {
		return Result{}, err
	}
	switch {
	case evidence.Digest(report) != s.ReportDigest:
		return Result{}, errors.New("its report is not the one that was attested")
	case s.Outcome != outcome || r.Outcome != outcome || r.Run != s.Run:
		return Result{}, fmt.Errorf("its attestation says %s of %s, its report %s of %s", s.Outcome, s.Run, r.Outcome, r.Run)
	}
	return Result{Outcome: outcome, Run: r.Run, Walls: wallsOf(r), Statement: &s, Harness: r.Harness.Digest, Report: r}, nil
}

// tail is what a child said last: its own reason, without what it logged before.
func tail(f *os.File) string {
	st, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	data := make([]byte, maxBrief)
	n, err := f.ReadAt(data, max(0, st.Size()-maxBrief))
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	words := string(data[:n])
	if at := strings.LastIndex("\n"+words, "\nharness: "); at >= 0 {
		words = words[at:]
	}
	return brief(words)
}
