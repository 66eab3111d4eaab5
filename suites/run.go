package suites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Options say what a run asks.
type Options struct {
	Config   runsc.Config      // the configuration that production uses
	Run      string            // id of the run, for who notes it before it begins; empty: a fresh one
	Select   func(*Trial) bool // nil: every trial
	Version  string            // of the harness
	Nice     int               // nice value of the jobs; 0: the harness's own
	Progress func(Progress)    // nil: nobody listens; called from one goroutine at a time
}

// Progress tells how far a run is.
type Progress struct {
	Stage string         // what begins, in words; empty when a trial is told
	Trial *reports.Trial // judged
	Done  int            // trials judged
	Total int
}

// CannotShow is said in every report.
var CannotShow = []string{
	"The runtime's kernel is the one wall that all the others stand on. A flaw in it brings all of them down at once, and no check from inside or beside it proves its absence.",
	"The harness shows that the configured walls are standing on this host, now. It says nothing about another host, another configuration or another hour.",
}

// Run sets the scene, shows that every observer can see, makes the attempts
// concurrently, judges what was recorded and removes everything it made. A run
// that was interrupted returns its report with Interrupted set, and its trials
// are broken rather than left out. An error beside a report says what could not
// be removed: the report stands, and qualifies nothing; an error alone, that
// there is none.
func Run(ctx context.Context, o Options) (*reports.Report, error) {
	return makeRun(ctx, o, nil, nil)
}

// makeRun is [Run], under a mutant where there is one, and in a workshop that
// the caller holds where there is one.
func makeRun(ctx context.Context, o Options, shop *workshop, m *Mutant) (*reports.Report, error) {
	r := &run{opt: o, began: time.Now(), tell: o.Progress, mutant: m}
	if r.tell == nil {
		r.tell = func(Progress) {}
	}
	for _, t := range Trials() {
		if o.Select == nil || o.Select(t) {
			r.trials = append(r.trials, t)
		}
	}
	if len(r.trials) == 0 {
		return nil, errors.New("no trial is selected: harness list shows what there is")
	}
	r.tell(Progress{Stage: "setting the scene", Total: len(r.trials)})
	var err error
	if r.scene, err = setScene(ctx, o.Config, errand{o.Run, o.Nice, shop, m}); err != nil {
		return nil, err
	}
	rep, err := r.collect(ctx)
	r.tell(Progress{Stage: "cleaning up", Done: len(r.trials), Total: len(r.trials)})
	if rep == nil {
		return nil, errors.Join(err, r.scene.strike())
	}
	if err = errors.Join(err, r.scene.strike()); err != nil {
		err = fmt.Errorf("remove what the run made: %w", err)
		rep.Disqualify(err.Error())
	}
	rep.DurationMS = time.Since(r.began).Milliseconds()
	return rep, err
}

type run struct {
	opt    Options
	trials []*Trial
	scene  *Scene
	eyes   *eyes
	began  time.Time
	tell   func(Progress)
	mutant *Mutant // nil: none
}

// collect shows that the observers see, lets the cells sit, and judges.
func (r *run) collect(ctx context.Context) (_ *reports.Report, err error) {
	wanted := map[string]bool{}
	for _, t := range r.trials {
		for _, w := range t.Wants {
			wanted[w.Observer] = true
		}
	}
	if r.eyes, err = openEyes(r.scene, wanted); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.eyes.close()) }()
	r.tell(Progress{Stage: "showing that the observers see", Total: len(r.trials)})
	if r.eyes.trees != nil {
		if err := r.eyes.trees.Before(ctx, []string{r.scene.image.Root}); err != nil {
			return nil, err
		}
	}
	if r.mutant != nil && r.mutant.Eyes != nil {
		if err := r.mutant.Eyes(r.scene, r.eyes); err != nil {
			return nil, err
		}
	}
	r.eyes.control(ctx)
	if r.mutant == nil || !r.mutant.Answer {
		if err := r.eyes.drop(r.scene); err != nil {
			return nil, err
		}
	}
	r.tell(Progress{Stage: "making the attempts", Total: len(r.trials)})
	judged := map[string]reports.Trial{}
	atRun := map[string]observers.Observation{}
	later := []*cellEvidence{}
	for ev := range r.sit(ctx) {
		if r.whole(ev) {
			later = append(later, ev)
			continue
		}
		r.judge(ev, atRun, judged)
	}
	if r.eyes.trees != nil {
		atRun["trees"] = r.eyes.trees.After(context.WithoutCancel(ctx))
	}
	for _, ev := range later {
		if o, ok := ev.observations["trees"]; ok {
			ev.observations["trees"] = observers.JoinTrees(atRun["trees"], o)
		}
		r.judge(ev, atRun, judged)
	}
	return r.report(ctx, judged)
}

// whole tells whether a trial of the cell needs what is looked at once a run,
// after all cells.
func (r *run) whole(ev *cellEvidence) bool {
	return slices.ContainsFunc(r.of(ev.place), func(t *Trial) bool {
		return slices.ContainsFunc(t.Wants, func(w reports.Want) bool { return w.Observer == "trees" })
	})
}

func (r *run) of(place string) []*Trial {
	var out []*Trial
	for _, t := range r.trials {
		if t.cell.Name == place {
			out = append(out, t)
		}
	}
	return out
}

func (r *run) judge(ev *cellEvidence, atRun map[string]observers.Observation, judged map[string]reports.Trial) {
	for _, t := range r.of(ev.place) {
		rt := ev.trial(t.Under(r.scene.cfg).report(ev.place), r.eyes.of, atRun)
		if r.mutant != nil && r.mutant.Forget != nil {
			r.mutant.Forget(&rt)
		}
		rt = Judge(rt)
		judged[rt.ID] = rt
		r.tell(Progress{Trial: &rt, Done: len(judged), Total: len(r.trials)})
	}
}

// report puts the trials into their fixed order.
func (r *run) report(ctx context.Context, judged map[string]reports.Trial) (*reports.Report, error) {
	cfg := r.scene.cfg
	digest, err := r.opt.Config.Digest()
	if err != nil {
		return nil, err
	}
	rep := &reports.Report{
		Schema: reports.Schema, Run: r.scene.Run, Started: r.began.UTC(), Complete: len(r.trials) == len(Trials()),
		Harness: reports.Harness{Version: r.opt.Version}, Host: thisHost(r.scene.cgroups.Version()),
		Runtime: reports.Runtime{
			Path: cfg.Runtime.Path, Version: r.scene.identity.Version, Digest: r.scene.identity.Digest,
			Platform: cfg.Runtime.Platform, Flags: append([]string{}, cfg.Runtime.Flags...),
		},
		Image:   reports.Image{Base: r.scene.image.Base, Fixture: r.scene.image.Fixture, Digest: r.scene.image.Digest},
		Profile: sandbox.ProfileDenyAll, ConfigDigest: digest, Limits: limitsOf(cfg), InForce: maps.Clone(r.eyes.inForce.values()),
		CannotShow: CannotShow,
	}
	if rep.Harness.Digest, err = runsc.FileDigest("/proc/self/exe"); err != nil {
		return nil, err
	}
	for _, t := range r.trials {
		rt, ok := judged[t.ID()]
		if !ok {
			rt = t.Under(r.scene.cfg).report(t.cell.Name)
			rt.Trouble = "its cell left no evidence"
			rt = Judge(rt)
		}
		rep.Trials = append(rep.Trials, rt)
	}
	// What is written is what is judged: the bounds of the report come first.
	reports.Bound(rep.Trials)
	for i := range rep.Trials {
		rep.Trials[i] = Judge(rep.Trials[i])
	}
	rep.Outcome = Outcome(rep.Trials)
	if err := r.eyes.inForce.strangers(); err != nil {
		rep.Disqualify(err.Error())
	}
	if ctx.Err() != nil {
		rep.Interrupted, rep.Outcome = context.Cause(ctx).Error(), hostile.Unproven
	}
	return rep, nil
}

func limitsOf(c runsc.Config) map[string]int64 {
	l := c.Limits.Limits()
	return map[string]int64{
		"cpu_millis": l.CPUMillis, "memory_bytes": l.MemoryBytes, "processes": l.Processes, "scratch_bytes": l.ScratchBytes,
		"wall_time_ns": int64(l.WallTime), "output_bytes": l.OutputBytes, "artifact_bytes": l.ArtifactBytes,
	}
}

func thisHost(cgroups int) reports.Host {
	h := reports.Host{Arch: runtime.GOARCH, CgroupVersion: cgroups}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel, h.Name = unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Nodename[:])
	}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		h.BootID = string(id[:min(36, len(id))])
	}
	return h
}

// Selection says which trials a run asks, by attempt names or step numbers; all
// when none is given.
func Selection(names []string) (func(*Trial) bool, error) {
	var attempts []*hostile.Attempt
	for _, n := range names {
		a, ok := hostile.Find(n)
		if !ok {
			return nil, fmt.Errorf("no attempt is named %q: use 1 to 10 or a name that harness list shows", n)
		}
		attempts = append(attempts, a)
	}
	return func(t *Trial) bool { return len(attempts) == 0 || slices.Contains(attempts, t.Attempt) }, nil
}
