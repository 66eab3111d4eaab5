package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Bare runs the payloads of the principal routes one after another with nothing
// watching, and returns the sum of the times between the start of each job's
// runtime and the end of its last process. Setting up and tearing down do not
// count, so it is what a bare runsc takes and a little less. It is the measure
// that a run is compared with, and shows nothing about any wall.
func Bare(ctx context.Context, cfg runsc.Config) (sum time.Duration, err error) {
	s, err := setScene(ctx, cfg, errand{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	for _, t := range bareTrials() {
		d, _, err := s.bare(ctx, t)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", t.ID(), err)
		}
		sum += d
	}
	return sum, nil
}

// bareTrials are the principal routes of the ten steps, in order.
func bareTrials() (out []*Trial) {
	for _, t := range Trials() {
		if t.Attempt.Step > 0 && t.Principal() {
			out = append(out, t)
		}
	}
	return out
}

func (s *Scene) bare(ctx context.Context, t *Trial) (took time.Duration, res sandbox.Result, err error) {
	sit := newSitting(t.cell, s, &eyes{}, []*Trial{t})
	job, err := sit.seal(id.New(sandbox.PrefixJob))
	if err != nil {
		return 0, res, err
	}
	var began, ended time.Time
	at := func(stage runsc.Stage, _ runsc.Traces) {
		switch stage {
		case runsc.StagePlaced:
			began = time.Now()
		case runsc.StageEnded:
			ended = time.Now()
		}
	}
	if _, err := s.runner.SubmitProbe(ctx, job, runsc.Probe{Change: t.cell.Change, LaunchNS: s.world.PlacePath(), At: at}); err != nil {
		return 0, res, err
	}
	if _, err := s.runner.Wait(ctx, job.ID); err != nil {
		return 0, res, err
	}
	res, err = s.runner.Collect(ctx, job.ID)
	if err != nil {
		return 0, res, err
	}
	// A runtime that fails has a beginning and an end too, and is no measure.
	unrun := slices.Contains([]runsc.Reason{runsc.ReasonStart, runsc.ReasonRuntime, runsc.ReasonInput}, runsc.Reason(res.Reason))
	if unrun || began.IsZero() || ended.IsZero() {
		words, _, _ := s.runner.Detail(job.ID)
		return 0, res, fmt.Errorf("the job was not run (%s): %s", res.Reason, words)
	}
	return ended.Sub(began), res, nil
}
