package runsc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// finish stores the signed result and the terminal state in one transaction.
func (r *Runner) finish(job sandbox.Job, v verdict, out *output) error {
	result, err := sandbox.SignResult(sandbox.Result{
		JobDigest: job.Digest, State: v.reason.State(), ExitCode: v.exit, Reason: string(v.reason),
		Stdout: out.stdout, Stderr: out.stderr, Artifacts: v.artifacts,
	}, r.opt.Key)
	if err != nil {
		return fmt.Errorf("job %s: %w", job.ID, err)
	}
	_, err = r.store.change(job.ID, r.now(), func(rec *record) error {
		rec.Status.State, rec.Result = result.State, &result
		rec.Detail, rec.Log = v.detail, v.log
		rec.Clean = v.clean
		return nil
	})
	return err
}

// recover removes what a crash left, before anything new is made. A job that
// was accepted or running is lost: how far it came cannot be known, so it is
// never run again.
func (r *Runner) recover() error {
	var left []record
	known := map[string]bool{}
	err := r.store.each(func(rec record) error {
		if !rec.Clean {
			left = append(left, rec)
			known[filepath.Base(rec.Dir)] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, rec := range left {
		errs = append(errs, r.recoverJob(rec))
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.within)
	defer cancel()
	errs = append(errs, sweep(ctx, filepath.Join(r.cfg.StateDir, "jobs"), func(name string) bool { return known[name] }))
	return errors.Join(errs...)
}

func (r *Runner) recoverJob(rec record) error {
	job := rec.Status.Receipt.Job
	// The paths are derived again, never taken from the record: an edited
	// state file must not lead the removal elsewhere.
	dir := filepath.Join(r.cfg.StateDir, "jobs", string(job.ID))
	group := r.cfg.CgroupParent + "/" + string(job.ID)
	if rec.Dir != dir || rec.Cgroup != group {
		return fmt.Errorf("recover job %s: its record names %s and %s, this configuration %s and %s: state_dir or cgroup_parent was changed while a job was unfinished; change it back and start once",
			job.ID, rec.Dir, rec.Cgroup, dir, group)
	}
	if err := removeTraces(r.within, r.cgroups, group, dir, Probe{}); err != nil {
		return fmt.Errorf("recover job %s: %w", job.ID, err)
	}
	if rec.Status.State.Terminal() {
		_, err := r.store.change(job.ID, r.now(), func(rec *record) error {
			rec.Clean = true
			return nil
		})
		return err
	}
	detail := "the runner died while the job ran; how far it came is not known"
	if rec.Status.State == sandbox.StateAccepted {
		detail = "the runner died before the job was started"
	}
	return r.finish(job, verdict{reason: ReasonLost, detail: detail, clean: true}, newOutput(0, func() {}))
}

// Wait returns the status once the job has ended and its teardown is done.
func (r *Runner) Wait(ctx context.Context, job id.ID) (sandbox.JobStatus, error) {
	r.mu.Lock()
	x := r.running[job]
	r.mu.Unlock()
	if x != nil {
		select {
		case <-x.stored:
		case <-ctx.Done():
			return sandbox.JobStatus{}, ctx.Err()
		}
	}
	return r.Inspect(ctx, job)
}

func cutDigest(image string) (string, bool) {
	hex, ok := strings.CutPrefix(image, "sha256:")
	return hex, ok && evidence.ValidateDigest(image) == nil
}

// noArtifacts is the store of a runner without one.
type noArtifacts struct{}

var errNoArtifacts = errors.New("this runner has no artifact store")

func (noArtifacts) Open(context.Context, evidence.Ref) (io.ReadCloser, error) {
	return nil, errNoArtifacts
}

func (noArtifacts) Put(context.Context, evidence.Ref, []byte) error { return errNoArtifacts }
