// Package runsc is a [sandbox.Runner] over the command line of a real gVisor
// runsc and OCI bundles, with the deny-all profile runsc-deny-all-v1.
//
// The whole runtime of a job (command, gofer, sandbox and stubs) lives from its
// first instruction in a cgroup that the runner made, so that what the host
// accounts to the job is what the job cost, and so that ending the cgroup ends
// the job. The kernel ends the command with the runner, and the runtime's other
// processes with the command. Each job has its own state folder of the runtime,
// its own sized tmpfs as scratch and its own record in an embedded store,
// written before anything is created.
//
// What this package does not prove: that any wall it puts up stands. It tells
// the runtime what to do and reads the kernel's accounts; whether the runtime
// did it is for the suites to show.
package runsc

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

// Options are what a runner needs beside its configuration.
type Options struct {
	Broker    string                               // who signs receipts
	Key       crypto.Signer                        // Ed25519, signs receipts and results
	Former    []ed25519.PublicKey                  // public halves of keys used before a rotation: what they signed in the state folder counts still
	Vouch     func() (sandbox.Capabilities, error) // the verified capabilities, asked for at every Submit
	Artifacts Artifacts                            // where inputs come from and outputs go to; nil: jobs with either are refused
	Resolve   func(image string) (string, error)   // image digest to root file system; nil: the image store of the configuration
	Logs      string                               // where the runtime's logs of failed starts are kept; empty: below the state folder
	Cgroups   string                               // root of the cgroup file systems; empty: /sys/fs/cgroup
	Nice      int                                  // nice value of the jobs, 0 to 19 (setpriority(2)); 0: the runner's own. The runner keeps its own, since it enforces the caps
	Log       *slog.Logger                         // nil: none
	Now       func() time.Time                     // nil: time.Now
}

// Runner runs jobs under one configuration. It is the only writer of its state
// folder. Its methods may be called from any goroutine.
type Runner struct {
	cfg     Config
	opt     Options
	store   *store
	cgroups *cgroup.Hierarchy
	log     *slog.Logger
	now     func() time.Time
	boot    string

	within time.Duration // Config.endWithin, but for tests

	mu      sync.Mutex
	closed  bool
	running map[id.ID]*execution
	wg      sync.WaitGroup
}

var _ sandbox.Runner = (*Runner)(nil)

// Open takes the state folder, removes what a crash of an earlier runner left
// and marks the jobs that it took down as lost. It never runs them again.
func Open(cfg Config, opt Options) (*Runner, error) {
	if opt.Vouch == nil || opt.Key == nil || opt.Broker == "" {
		return nil, errors.New("open runner: a key, a broker name and capabilities to accept jobs under are needed")
	}
	r := &Runner{cfg: cfg, opt: opt, log: opt.Log, now: opt.Now, boot: bootID(), within: cfg.endWithin(), running: map[id.ID]*execution{}}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.opt.Resolve == nil {
		r.opt.Resolve = cfg.resolve
	}
	if r.opt.Logs == "" {
		r.opt.Logs = filepath.Join(cfg.StateDir, "logs")
	}
	if r.opt.Artifacts == nil {
		r.opt.Artifacts = noArtifacts{}
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("open runner: not root: cgroups, mounts and runsc need it; run as root")
	}
	root := opt.Cgroups
	if root == "" {
		root = "/sys/fs/cgroup"
	}
	keys, err := newKeyring(opt.Key, opt.Former)
	if err != nil {
		return nil, fmt.Errorf("open runner: %w", err)
	}
	if r.cgroups, err = cgroup.Detect(root); err != nil {
		return nil, fmt.Errorf("open runner: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(cfg.StateDir, "jobs"), 0o711); err != nil {
		return nil, fmt.Errorf("open runner: state_dir: %w", err)
	}
	if r.store, err = openStore(stateFile(cfg.StateDir), keys); err != nil {
		return nil, fmt.Errorf("open runner: %w", err)
	}
	if err := r.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("open runner: %w", err), r.store.close())
	}
	return r, nil
}

// resolve finds an image in the image store.
func (c Config) resolve(image string) (string, error) {
	hex, ok := cutDigest(image)
	if !ok {
		return "", fmt.Errorf("%q is not a sha256 digest", image)
	}
	dir := filepath.Join(c.ImageStore, "sha256-"+hex)
	st, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("not in the image store: %w", err)
	}
	if !st.IsDir() {
		return "", fmt.Errorf("%s is not a folder", dir)
	}
	return dir, nil
}

// Close waits for the running jobs, or cancels them when ctx is done first,
// and releases the state folder.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		r.wg.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		r.mu.Lock()
		for _, x := range r.running {
			x.end.because(ReasonCancelled)
		}
		r.mu.Unlock()
		<-idle // bounded: every step of an ending job is
	}
	if g, err := r.cgroups.Open(r.cfg.CgroupParent); err == nil {
		if err := g.RemoveIfEmpty(); err != nil {
			return errors.Join(err, r.store.close())
		}
	}
	return r.store.close()
}

// Capabilities returns what jobs are accepted under, after having looked at
// them once more: shape, expiry, runtime digest and profile.
func (r *Runner) Capabilities(context.Context) (sandbox.Capabilities, error) {
	c, err := r.opt.Vouch()
	if err != nil {
		return sandbox.Capabilities{}, fmt.Errorf("capabilities: %w: %w", sandbox.ErrUnqualified, err)
	}
	if err := c.ValidateAt(r.now()); err != nil {
		return sandbox.Capabilities{}, fmt.Errorf("capabilities: %w: %w", sandbox.ErrUnqualified, err)
	}
	digest, err := FileDigest(r.cfg.Runtime.Path)
	if err != nil {
		return sandbox.Capabilities{}, fmt.Errorf("capabilities: %w: %w", sandbox.ErrUnqualified, err)
	}
	if digest != c.RuntimeDigest {
		return sandbox.Capabilities{}, fmt.Errorf("capabilities: %w: runsc at %s has digest %s, and %s was qualified",
			sandbox.ErrUnqualified, r.cfg.Runtime.Path, digest, c.RuntimeDigest)
	}
	if grant := r.cfg.Limits.Limits(); !c.Limits.Within(grant) {
		return sandbox.Capabilities{}, fmt.Errorf("capabilities: %w: their limits exceed the configuration's", sandbox.ErrUnqualified)
	}
	return c, nil
}

// Submit accepts a sealed job and starts it.
func (r *Runner) Submit(ctx context.Context, job sandbox.Job) (sandbox.Receipt, error) {
	return r.SubmitProbe(ctx, job, Probe{})
}

// SubmitProbe is Submit with eyes on the job, for the harness.
func (r *Runner) SubmitProbe(ctx context.Context, job sandbox.Job, p Probe) (sandbox.Receipt, error) {
	if err := job.Validate(); err != nil {
		return sandbox.Receipt{}, fmt.Errorf("submit: %w", err)
	}
	caps, err := r.Capabilities(ctx)
	if err != nil {
		return sandbox.Receipt{}, fmt.Errorf("submit %s: %w", job.ID, err)
	}
	if err := caps.SupportsAt(job, r.now()); err != nil {
		return sandbox.Receipt{}, fmt.Errorf("submit %s: %w", job.ID, err)
	}
	receipt, err := sandbox.SignReceipt(sandbox.Receipt{
		SchemaVersion: sandbox.SchemaVersion, Job: job, Capabilities: caps, Broker: r.opt.Broker, AcceptedAt: r.now().UTC(),
	}, r.opt.Key)
	if err != nil {
		return sandbox.Receipt{}, fmt.Errorf("submit %s: %w", job.ID, err)
	}
	return r.accept(receipt, p)
}

// accept stores the job and starts it, once.
func (r *Runner) accept(receipt sandbox.Receipt, p Probe) (sandbox.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return sandbox.Receipt{}, errors.New("submit: the runner is closed")
	}
	job := receipt.Job
	rec := record{
		Status: sandbox.JobStatus{Receipt: receipt, State: sandbox.StateAccepted, Revision: 1, UpdatedAt: receipt.AcceptedAt},
		Dir:    filepath.Join(r.cfg.StateDir, "jobs", string(job.ID)),
		Cgroup: path.Join(r.cfg.CgroupParent, string(job.ID)),
		Boot:   r.boot,
	}
	rec, fresh, err := r.store.accept(rec)
	if err != nil || !fresh {
		return rec.Status.Receipt, err
	}
	x := &execution{
		r: r, job: job, probe: p, rec: rec, walls: p.walls(r.cfg.Walls(), job.Limits),
		dirs: dirsAt(rec.Dir), end: newEnding(), out: newOutput(0, func() {}), stored: make(chan struct{}),
	}
	x.traces = Traces{
		Job: string(job.ID), Container: string(job.ID), Cgroup: rec.Cgroup,
		Dir: rec.Dir, Scratch: x.dirs.scratch, Root: x.dirs.root,
	}
	r.running[job.ID] = x
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		x.run()
		r.mu.Lock()
		delete(r.running, job.ID)
		r.mu.Unlock()
	}()
	return receipt, nil
}

// Inspect returns the durable status.
func (r *Runner) Inspect(_ context.Context, job id.ID) (sandbox.JobStatus, error) {
	rec, err := r.store.find(job)
	return rec.Status, err
}

// Cancel asks for the job's end. A job that has ended is left as it is.
func (r *Runner) Cancel(_ context.Context, job id.ID) error {
	r.mu.Lock()
	x := r.running[job]
	r.mu.Unlock()
	if x != nil {
		x.end.because(ReasonCancelled)
		return nil
	}
	_, err := r.store.find(job)
	return err
}

// Collect returns the signed result of a job that has ended.
func (r *Runner) Collect(_ context.Context, job id.ID) (sandbox.Result, error) {
	rec, err := r.store.find(job)
	if err != nil {
		return sandbox.Result{}, err
	}
	if rec.Result == nil {
		return sandbox.Result{}, fmt.Errorf("collect %s: it is %s and has no result yet", job, rec.Status.State)
	}
	return *rec.Result, nil
}

// Detail tells in words, and by the place of the runtime's logs, what stands
// behind a job's reason. Both are empty when there is nothing to add.
func (r *Runner) Detail(job id.ID) (words, log string, err error) {
	rec, err := r.store.find(job)
	return rec.Detail, rec.Log, err
}
