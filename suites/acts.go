package suites

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/runsc"
)

// act does to the running job what the cell says.
func (s *sitting) act(ctx context.Context, job id.ID) error {
	if s.cell.Then != Cancel {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.scene.within(reachWithin))
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.scene.runner.Wait(ctx, job)
	}()
	select {
	case <-s.running:
	case <-ended:
		return errors.New("the job ended before it could be cancelled")
	}
	if err := awaitClaim(ctx, s.traces.Scratch, s.scene.Nonce, ended); err != nil {
		return err
	}
	return s.scene.runner.Cancel(ctx, job)
}

// runnerAct is the act of a runner that is there to be killed.
const runnerAct = "runner"

func init() { act.Register(runnerAct, runnerMain) }

// runnerOrder is what the killed runner needs to run one job as the run's own
// runner would.
type runnerOrder struct {
	Config   runsc.Config
	Job      sandbox.Job
	Root     string // of the image
	LaunchNS string
	Digest   string // of the runtime
	Key      ed25519.PrivateKey
}

// runnerMain runs one job and says where its traces are: one line at placed,
// one at started. It waits to be killed.
func runnerMain(args []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "runner:", err)
		return 1
	}
	var o runnerOrder
	if len(args) != 1 {
		return 2
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return fail(err)
	}
	s := &Scene{
		cfg: o.Config, Run: "killed", shelf: newShelf(), mandate: newMandate(o.Config.Limits),
		identity: runsc.Identity{Digest: o.Digest}, image: imageAt(o.Job.Image, o.Root), key: o.Key,
	}
	if s.runner, err = runsc.Open(s.cfg, s.options(s.cfg)); err != nil {
		return fail(err)
	}
	out := json.NewEncoder(os.Stdout)
	_, err = s.runner.SubmitProbe(context.Background(), o.Job, runsc.Probe{LaunchNS: o.LaunchNS, At: func(stage runsc.Stage, t runsc.Traces) {
		if stage != runsc.StagePlaced && stage != runsc.StageStarted {
			return
		}
		if out.Encode(t) != nil {
			os.Exit(1)
		}
		if stage == runsc.StagePlaced { // the harness arms its observers now
			if _, err := bufio.NewReader(os.Stdin).ReadByte(); err != nil {
				os.Exit(1)
			}
		}
	}})
	if err != nil {
		return fail(err)
	}
	_, err = s.runner.Wait(context.Background(), o.Job.ID)
	return fail(errors.Join(err, errors.New("the job ended before the runner was killed")))
}

// runKilled runs the job in a runner of its own, kills that in the middle of
// the job, and opens its state again: what the next start finds and removes is
// what the observers look at.
func (s *sitting) runKilled(ctx context.Context, ev *cellEvidence) error {
	job, err := s.seal(s.jobID())
	if err != nil {
		return err
	}
	ev.job = string(job.ID)
	cfg := s.scene.cfg
	cfg.StateDir = filepath.Join(s.scene.dir, "killed")
	cfg.CgroupParent += "/killed"
	child, err := s.startRunner(runnerOrder{
		Config: cfg, Job: job, Root: s.scene.image.Root, LaunchNS: s.scene.world.PlacePath(), Digest: s.scene.identity.Digest,
		Key: s.scene.key, // who opens its state again must have signed it
	})
	if err != nil {
		return err
	}
	defer child.end()
	if err := child.follow(ctx, s); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.scene.within(reachWithin))
	defer cancel()
	if err := awaitClaim(ctx, s.traces.Scratch, s.scene.Nonce, nil); err != nil {
		return err
	}
	claims, err := os.Open(filepath.Join(s.traces.Scratch, claimsFile))
	if err != nil {
		return err
	}
	ev.claims, err = hostile.ParseClaims(claims, s.scene.Nonce, s.asked)
	if err := errors.Join(err, claims.Close()); err != nil {
		return err
	}
	if err := child.kill(); err != nil {
		return err
	}
	s.at(ctx)(runsc.StageEnded, s.traces)
	return s.reopen(ctx, cfg, job, ev)
}

// reopen starts the runner again after its death.
func (s *sitting) reopen(ctx context.Context, cfg runsc.Config, job sandbox.Job, ev *cellEvidence) error {
	r, err := runsc.Open(cfg, s.scene.options(cfg))
	if err != nil {
		return err
	}
	res, err := r.Collect(ctx, job.ID)
	detail, _, _ := r.Detail(job.ID)
	if err := errors.Join(err, r.Close(ctx)); err != nil {
		return err
	}
	if runsc.Reason(res.Reason) != runsc.ReasonLost {
		return fmt.Errorf("the killed runner's job is told as %q", res.Reason)
	}
	ev.observations = s.watch.stored(s.cell.Name)
	if ev.observations == nil {
		ev.observations = map[string]observers.Observation{}
	}
	ev.ended = &reports.Ended{
		Reason: res.Reason, ExitCode: res.ExitCode, Detail: detail, CPUMS: s.cpu.Milliseconds(), WallMS: s.lived.Milliseconds(),
		Refusal: hostile.Refusal{Kind: hostile.Ended, Place: hostile.ProcessGroup},
	}
	return nil
}
