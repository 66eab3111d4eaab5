package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/runsc"
)

// ProveOptions say what is proved.
type ProveOptions struct {
	Config   runsc.Config        // the configuration that production uses
	Mutants  []string            // by name; nil: every one
	Version  string              // of the harness
	Progress func(ProveProgress) // nil: nobody listens; called from one goroutine at a time
}

// ProveProgress tells how far a matrix is.
type ProveProgress struct {
	Stage  string          // what begins, in words; empty when a mutant is told
	Mutant *reports.Mutant // asked and compared
	Done   int             // mutants
	Total  int
}

// ProofCannotShow is said in every proof.
var ProofCannotShow = []string{
	"A mutant shows that its check can fail in the one way that the mutant takes. It says nothing of a hole that no mutant opens.",
	"The matrix was made on this host, with this harness and this runner. Another of any of the three has shown nothing yet.",
}

// At most so many mutants are asked side by side: each has a scene of its own,
// and their jobs share the machine.
const mutantsAtOnce = 2

// mutantWithin bounds one mutant, whatever it brought down.
const mutantWithin = 90 * time.Second

// Prove lowers one wall after the other, or breaks one part of the harness
// after the other, makes the attempts, and compares what was judged with what
// was predicted. An error means that there is no proof.
func Prove(ctx context.Context, o ProveOptions) (_ *reports.Proof, err error) {
	asked, err := MutantsNamed(o.Mutants)
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errNotRoot
	}
	groups, err := cgroup.Detect("/sys/fs/cgroup")
	if err != nil {
		return nil, err
	}
	shop, err := openWorkshop(o.Config.StateDir, groups)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shop.close()) }()
	p := &prover{opt: o, shop: shop, asked: asked, tell: o.Progress}
	if p.tell == nil {
		p.tell = func(ProveProgress) {}
	}
	return p.prove(ctx)
}

// MutantsNamed returns the named mutants in the matrix' order; all for none.
func MutantsNamed(names []string) ([]*Mutant, error) {
	all := Mutants()
	for _, n := range names {
		if !slices.ContainsFunc(all, func(m *Mutant) bool { return m.Name == n }) {
			return nil, fmt.Errorf("no mutant is named %q: harness prove --list shows what there is", n)
		}
	}
	return slices.DeleteFunc(all, func(m *Mutant) bool { return len(names) > 0 && !slices.Contains(names, m.Name) }), nil
}

type prover struct {
	opt   ProveOptions
	shop  *workshop
	asked []*Mutant
	tell  func(ProveProgress)

	alone sync.RWMutex // a mutant that disturbs others holds it alone
	mu    sync.Mutex   // of what follows, and of tell
	done  int
}

func (p *prover) prove(ctx context.Context) (*reports.Proof, error) {
	began := time.Now()
	out := &reports.Proof{
		Schema: reports.ProofSchema, Proof: string(id.New("proof")), Started: began.UTC(), CannotShow: ProofCannotShow,
		Complete: len(p.asked) == len(Mutants()), Baseline: []reports.ProofTrial{}, Mutants: []reports.Mutant{},
	}
	p.tell(ProveProgress{Stage: "the row with nothing mutated", Total: len(p.asked)})
	base, err := p.ask(ctx, nil)
	if base == nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("the row with nothing mutated: %w", err)
	}
	out.Harness, out.Host, out.Runtime, out.ConfigDigest = base.Harness, base.Host, base.Runtime, base.ConfigDigest
	for _, t := range base.Trials {
		out.Baseline = append(out.Baseline, compared(t, Prediction{Verdict: hostile.Held}))
	}
	out.Mutants = p.all(ctx)
	if ctx.Err() != nil {
		out.Interrupted = context.Cause(ctx).Error()
	}
	out.Outcome = out.Judged()
	out.Finished = time.Now().UTC()
	out.DurationMS = time.Since(began).Milliseconds()
	return out, nil
}

// all asks every mutant, a few side by side, and returns their lines in order.
func (p *prover) all(ctx context.Context) []reports.Mutant {
	lines := make([]reports.Mutant, len(p.asked))
	gate := semaphore.NewWeighted(mutantsAtOnce)
	var wg sync.WaitGroup
	for i, m := range p.asked {
		_ = gate.Acquire(context.WithoutCancel(ctx), 1)
		wg.Go(func() {
			defer gate.Release(1)
			lines[i] = p.line(ctx, m)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.done++
			p.tell(ProveProgress{Mutant: &lines[i], Done: p.done, Total: len(p.asked)})
		})
	}
	wg.Wait()
	return lines
}

// line asks one mutant.
func (p *prover) line(ctx context.Context, m *Mutant) (out reports.Mutant) {
	began := time.Now()
	out = reports.Mutant{Name: m.Name, Title: m.Title, Part: m.Part, Source: m.Source, Trials: []reports.ProofTrial{}}
	if m.Of != nil {
		out.Step, out.Attempt = m.Of.Step, m.Of.Name
	}
	defer func() { out.DurationMS = time.Since(began).Milliseconds() }()
	if why := m.needs(p.opt.Config); why != "" {
		out.Killing, out.Reason = reports.NotApplicable, why
		return out
	}
	if ctx.Err() != nil {
		out.Killing, out.Reason = reports.NotAsked, "interrupted"
		return out
	}
	if m.Alone {
		p.alone.Lock()
		defer p.alone.Unlock()
	} else {
		p.alone.RLock()
		defer p.alone.RUnlock()
	}
	began = time.Now()
	rep, err := p.ask(ctx, m)
	if rep == nil || err != nil {
		out.Killing, out.Reason = reports.NotAsked, fmt.Sprint(err)
		if err == nil {
			out.Reason = "no report came"
		}
		return out
	}
	if m.Took != nil {
		if why := m.Took(rep); why != "" {
			out.Killing, out.Reason = reports.NotApplicable, why
			return out
		}
	}
	return m.compare(out, rep.Trials)
}

// ask makes the run of one mutant, nil for none.
func (p *prover) ask(ctx context.Context, m *Mutant) (*reports.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, mutantWithin, fmt.Errorf("it was not over in %s", mutantWithin))
	defer cancel()
	rep, err := makeRun(ctx, Options{Config: p.opt.Config, Version: p.opt.Version, Select: m.sits}, p.shop, m)
	if err == nil && rep.Interrupted != "" {
		err = errors.New(rep.Interrupted)
	}
	return rep, err
}

// compare says what became of the mutant.
func (m *Mutant) compare(out reports.Mutant, trials []reports.Trial) reports.Mutant {
	var otherwise []string
	turned := 0
	predicted := map[string]int{} // how many trials each prediction met
	for _, t := range trials {
		p := m.predicts(t.ID)
		predicted[p.Trials]++
		out.Trials = append(out.Trials, compared(t, p))
		if t.Verdict != hostile.Held {
			turned++
		}
		if why := p.foretold(t); why != "" {
			otherwise = append(otherwise, t.ID+": "+why)
		}
	}
	for _, p := range m.predictions() {
		if predicted[p.Trials] == 0 {
			otherwise = append(otherwise, p.Trials+": no trial was asked that the prediction is about")
		}
	}
	switch {
	case turned == 0:
		out.Killing, out.Reason = reports.Survived, fmt.Sprintf("nothing noticed: all %d trials held", len(trials))
	case len(otherwise) > 0:
		out.Killing, out.Reason = reports.Mispredicted, strings.Join(otherwise, "; ")
	default:
		out.Killing, out.Reason = reports.Killed, fmt.Sprintf("%d of %d trials turned, each as predicted", turned, len(trials))
	}
	return out
}

func compared(t reports.Trial, p Prediction) reports.ProofTrial {
	out := reports.ProofTrial{ID: t.ID, Attempt: t.Attempt, Verdict: t.Verdict, Predicted: p.Verdict, Basis: Basis(t)}
	if t.Verdict != hostile.Held {
		out.Reason = t.Reason
	}
	return out
}

// needs tells why the host cannot have the mutant.
func (m *Mutant) needs(cfg runsc.Config) string {
	if m.Need == nil {
		return ""
	}
	return m.Need(cfg)
}
