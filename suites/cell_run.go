package suites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/runsc"
)

// guestPath is where the payload is in the job's image.
const guestPath = "/tenwalls/guest"

// claimsFile is where the payload also writes its claims, in scratch, when the
// harness has to know of them while the job runs.
const claimsFile = "claims.jsonl"

// sitting is one cell in one run.
type sitting struct {
	cell  *Cell
	scene *Scene
	eyes  *eyes
	want  []*Trial // the cell's trials that this run asks for
	again int      // how many sittings of the cell there were before

	watch   *watching
	traces  runsc.Traces
	group   *cgroup.Group
	cpu     time.Duration
	placed  time.Time
	lived   time.Duration
	trouble error         // in placing the job
	running chan struct{} // closed when the runtime runs
	once    sync.Once
}

func newSitting(c *Cell, s *Scene, e *eyes, want []*Trial) *sitting {
	return &sitting{cell: c, scene: s, eyes: e, want: want, running: make(chan struct{})}
}

// seal makes the cell's job.
func (s *sitting) seal(job id.ID) (sandbox.Job, error) {
	order := hostile.Order{Nonce: s.scene.Nonce, Params: map[string]string{}}
	// What a cap leaves behind is there only when the cap ends the job: then the
	// cell's attempt is made although nobody asks what came of it.
	for _, asked := range [][]*Trial{s.want, s.cell.trials} {
		for _, t := range asked {
			if r, _ := t.Attempt.Route(t.Route); r.Inside {
				order.Routes = append(order.Routes, t.Name())
			}
		}
		if len(order.Routes) > 0 {
			break
		}
	}
	if len(order.Routes) == 0 {
		order.Routes = s.cell.stand()
	}
	if s.cell.Params != nil {
		order.Params = s.cell.Params(s.scene)
	}
	if s.cell.Then != LetRun || s.cell.Witness {
		order.Params["claims_file"] = sandbox.ScratchPath + "/" + claimsFile
	}
	if s.lingers() {
		order.Params["linger_ms"] = text(s.scene.within(linger).Milliseconds())
	}
	s.mutate(&order)
	arg, err := order.Encode()
	if err != nil {
		return sandbox.Job{}, err
	}
	j := sandbox.Job{
		SchemaVersion: sandbox.SchemaVersion, ID: job, Key: s.scene.Run + "/" + s.cell.Name,
		Scope: sandbox.Scope{Tenant: "tenwalls", Project: s.scene.Run}, Principal: "tenwalls harness",
		Image: s.scene.image.Digest, Argv: []string{guestPath, arg}, Env: s.cell.Env, Outputs: slices.Clone(s.cell.Outputs),
		Network: sandbox.NetworkDenied, Limits: s.scene.Limits(), Inputs: s.inputs(),
	}
	if s.again > 0 { // under one key there is one job
		j.Key += fmt.Sprintf("/again-%d", s.again)
	}
	if s.cell == neighbourCell {
		n := s.scene.neighbour
		ref := s.scene.shelf.add([]byte("the neighbour's submission\n"+n.Secret+"\n"), "neighbour")
		j.Inputs = []sandbox.Input{{Path: n.Name, Ref: ref}}
	}
	if s.cell.Limits != nil {
		s.cell.Limits(&j.Limits)
	}
	if m := s.scene.mutant; m != nil && m.Job != nil {
		m.Job(&j)
	}
	return sandbox.Seal(j)
}

// linger is how long such a job stays, on a machine of usual speed.
const linger = 300 * time.Millisecond

// lingers tells whether an observer needs the job to live long enough to be
// looked at after the runtime has locked itself in.
func (s *sitting) lingers() bool {
	if s.cell.Name == referenceCell { // what is in force is read back from it
		return true
	}
	for _, n := range s.observers() {
		if slices.Contains([]string{"mounts", "namespaces", "routes", "listing", "boot"}, n) {
			return true
		}
	}
	return false
}

// observers are those that the asked trials name.
func (s *sitting) observers() []string {
	var out []string
	for _, t := range s.want {
		for _, w := range t.Wants {
			if !slices.Contains(out, w.Observer) {
				out = append(out, w.Observer)
			}
		}
	}
	if s.cell == grantedCell {
		out = append(out, "mounts")
	}
	slices.Sort(out)
	return out
}

// run asks the cell's questions and returns what was recorded. It never fails:
// what went wrong is evidence too.
func (s *sitting) run(ctx context.Context) *cellEvidence {
	ev := &cellEvidence{place: s.cell.Name, started: time.Now(), observations: map[string]observers.Observation{}}
	defer func() { ev.lasted = time.Since(ev.started) }()
	s.scene.mandate.renew()
	var err error
	if s.cell.Then == KillRunner {
		err = s.runKilled(ctx, ev)
	} else {
		err = s.runHere(ctx, ev)
	}
	if err != nil {
		ev.trouble = err.Error()
	}
	if ctx.Err() != nil {
		ev.trouble = strings.TrimSuffix(interruptedFirst+ev.trouble, ": ")
	}
	s.once.Do(func() { close(s.running) })
	return ev
}

// interruptedFirst stands before the trouble of a cell that was interrupted.
const interruptedFirst = "interrupted: "

func (s *sitting) jobID() id.ID {
	if s.cell == neighbourCell {
		return s.scene.neighbour.Job
	}
	return id.New(sandbox.PrefixJob)
}

// runHere runs the job in the run's own runner.
func (s *sitting) runHere(ctx context.Context, ev *cellEvidence) error {
	if err := ctx.Err(); err != nil {
		return err // an interrupted run submits nothing more
	}
	job, err := s.seal(s.jobID())
	if err != nil {
		return err
	}
	ev.job = string(job.ID)
	r := s.scene.runner
	if _, err := r.SubmitProbe(ctx, job, runsc.Probe{Change: s.change(), LaunchNS: s.scene.world.PlacePath(), Keep: s.keep(), At: s.at(ctx)}); err != nil {
		return err
	}
	acted := make(chan error, 1)
	go func() { acted <- s.act(ctx, job.ID) }()
	// The job is bounded by its caps; an interruption cancels it.
	stop := context.AfterFunc(ctx, func() { _ = r.Cancel(context.WithoutCancel(ctx), job.ID) })
	defer stop()
	if _, err := r.Wait(context.WithoutCancel(ctx), job.ID); err != nil {
		return err
	}
	res, err := r.Collect(context.WithoutCancel(ctx), job.ID)
	if err != nil {
		return err
	}
	detail, log, err := r.Detail(job.ID)
	if log != "" {
		detail += " (the runtime's logs: " + log + ")"
	}
	return errors.Join(err, s.trouble, <-acted, s.collect(ev, res, detail))
}

// change is the cell's lifts and the mutant, on the job's own walls.
func (s *sitting) change() func(*runsc.Walls) {
	change := s.cell.Change
	if s.cell == grantedCell {
		change = grantNeighbour(s.scene.neighbour.Folder)
	}
	m := s.scene.mutant
	if m == nil || m.Walls == nil {
		return change
	}
	return func(w *runsc.Walls) {
		if change != nil {
			change(w)
		}
		m.Walls(s.scene, s.cell, w)
	}
}

// at follows the job through its stages.
func (s *sitting) at(ctx context.Context) func(runsc.Stage, runsc.Traces) {
	return func(stage runsc.Stage, t runsc.Traces) {
		switch stage {
		case runsc.StagePlaced:
			s.arm(ctx, t)
		case runsc.StageStarted:
			if m := s.scene.mutant; m != nil && m.Begun != nil {
				s.trouble = errors.Join(s.trouble, m.Begun(t))
			}
			s.once.Do(func() { close(s.running) })
		case runsc.StageEnded:
			s.lived = time.Since(s.placed)
			if s.group != nil {
				s.cpu, _ = s.group.ProcessorTime()
			}
			s.watch.ended()
		}
	}
}

func (s *sitting) arm(ctx context.Context, t runsc.Traces) {
	s.traces, s.placed = t, time.Now()
	s.trouble = s.openInputs(t.Inputs)
	s.group, _ = s.scene.cgroups.Open(t.Cgroup)
	s.watch = s.eyes.arm(ctx, s.observers(), s.cell.Name, t)
	if len(s.cell.Lifts) == 0 && s.group != nil {
		s.watch.watches[inForceName] = &inForceWatch{&s.eyes.inForce, s.cell.Name, s.eyes.host, s.group, t, s.scene.identity}
	}
	s.watch.sample()
}

// collect takes what the job produced and what the observers saw.
func (s *sitting) collect(ev *cellEvidence, res sandbox.Result, detail string) error {
	ev.result = res
	s.eyes.counts.took(s.cell.Name, res)
	s.eyes.secrets.Saw(s.cell.Name, "standard output", res.Stdout)
	s.eyes.secrets.Saw(s.cell.Name, "standard error", res.Stderr)
	for _, ref := range res.Artifacts {
		s.eyes.secrets.Saw(s.cell.Name, "artifact "+ref.Source, s.scene.shelf.take(ref))
	}
	claims, err := hostile.ParseClaims(bytes.NewReader(res.Stdout), s.scene.Nonce, s.asked)
	ev.claims = claims
	if s.watch == nil {
		return errors.Join(err, fmt.Errorf("the job was never placed: %s: %s", res.Reason, detail))
	}
	ev.observations = s.watch.stored(s.cell.Name)
	if c, ok := s.eyes.all["census"].(census); ok {
		ev.observations["census"] = c.seen(s.cell.Name, claims)
	}
	reason := runsc.Reason(res.Reason)
	ev.ended = &reports.Ended{
		Reason: res.Reason, ExitCode: res.ExitCode, Refusal: endings[reason], Detail: detail,
		CPUMS: s.cpu.Milliseconds(), WallMS: s.lived.Milliseconds(),
	}
	switch reason {
	case runsc.ReasonStart, runsc.ReasonRuntime, runsc.ReasonInput:
		return errors.Join(err, fmt.Errorf("the job was not run (%s): %s", reason, detail))
	case runsc.ReasonExited:
		if len(s.cell.Outputs) > 0 {
			ev.ended.Refusal = hostile.Refusal{Kind: hostile.InForce, Place: hostile.ArtifactBound}
		}
	}
	return err
}

// asked tells whether the cell was asked for that route.
func (s *sitting) asked(attempt, route string) bool {
	return slices.ContainsFunc(s.want, func(t *Trial) bool { return t.Attempt.Name == attempt && t.Route == route })
}

// stand is what a cell's payload does when none of its routes is code: it waits
// to be ended.
func (c *Cell) stand() []string {
	if c == grantedCell {
		return []string{"leftover/daemon"}
	}
	return []string{"leftover/cancelled"}
}

// awaitClaim waits until the payload has claimed in scratch that it reached its
// act.
func awaitClaim(ctx context.Context, scratch, nonce string, ended <-chan struct{}) error {
	file := filepath.Join(scratch, claimsFile)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(file)
		if err == nil && bytes.Contains(data, []byte(nonce)) && bytes.Contains(data, []byte(`"`+string(hostile.Reached)+`"`)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the payload did not reach its act in time")
		case <-ended:
			return errors.New("the job ended before the payload reached its act")
		case <-tick.C:
		}
	}
}
