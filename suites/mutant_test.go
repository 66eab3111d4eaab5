package suites

import (
	"path"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// Every mutant has something to turn, of trials that it asks, and every
// prediction is about one of them.
func TestMutantsPredictWhatTheyAsk(t *testing.T) {
	for _, m := range Mutants() {
		if len(m.Foretold()) == 0 {
			t.Errorf("%s turns nothing: a mutant that has to survive is none", m.Name)
		}
		for _, c := range m.cells() {
			if !slices.ContainsFunc(cells, func(o *Cell) bool { return o.Name == c }) {
				t.Errorf("%s: there is no cell %s", m.Name, c)
			}
		}
		for _, p := range m.predictions() {
			if _, err := path.Match(p.Trials, ""); err != nil {
				t.Errorf("%s: %s: %v", m.Name, p.Trials, err)
			}
			if !slices.ContainsFunc(Trials(), func(tr *Trial) bool {
				return m.sits(tr) && slices.Equal(m.predicts(tr.ID()).Basis, p.Basis) && m.predicts(tr.ID()).Trials == p.Trials
			}) {
				t.Errorf("%s: no asked trial is under the prediction of %s", m.Name, p.Trials)
			}
		}
		if m.Of != nil && m.Part != reports.PartPayload && !slices.ContainsFunc(m.Foretold(), func(p Predicted) bool { return attemptOf(p.Trial) == m.Of.Name }) {
			t.Errorf("%s is %s's, and turns none of its trials", m.Name, m.Of.Name)
		}
	}
}

func attemptOf(trial string) string { return strings.Split(trial, "/")[1] }

// Each attempt has a mutant that brings it down, each observer one that blinds
// it and one that takes its control.
func TestEveryCheckHasAMutant(t *testing.T) {
	fallen, blinded := map[string]bool{}, map[string]bool{}
	for _, m := range Mutants() {
		for _, p := range m.Foretold() {
			if p.Verdict == hostile.Fell || p.Verdict == hostile.Misnamed {
				fallen[attemptOf(p.Trial)] = true
			}
			for _, b := range p.Basis {
				if o, ok := strings.CutPrefix(b, "control: "); ok {
					blinded[string(m.Part)+" "+o] = true
				}
				if o, ok := strings.CutPrefix(b, "lost: "); ok {
					blinded[string(m.Part)+" "+o] = true
				}
			}
		}
	}
	observed := map[string]bool{}
	for _, tr := range Trials() {
		if !fallen[tr.Attempt.Name] {
			t.Errorf("no mutant brings %s down", tr.Attempt.Name)
		}
		for _, w := range tr.Wants {
			observed[w.Observer] = true
		}
	}
	for o := range observed {
		for _, part := range []reports.Part{reports.PartObserver, reports.PartControl} {
			if o == "clock" { // two mutants of the wall clock show that it can see, and nobody can blind time.Now
				continue
			}
			if !blinded[string(part)+" "+o] {
				t.Errorf("no mutant of the %s of %s", part, o)
			}
		}
	}
}

// The parts that the plan lists by name.
func TestListedMutantsAreThere(t *testing.T) {
	for _, name := range []string{
		"canary-world-readable", "canary-missing", "job-as-root", "filter-unloaded", "filter-unloaded-and-route", "counter-not-installed",
		"scratch-unsized", "scratch-host-folder", "root-overlay-self", "tmp-open", "processes-unlimited", "processes-twice", "processes-host-alone",
		"processes-per-parent", "processor-uncapped", "processor-per-process", "memory-unlimited", "swap-allowed", "inputs-writable", "root-writable",
		"neighbour-mounted-0600", "neighbour-mounted-0644", "neighbour-parent-mounted", "metadata-route", "metadata-dropped", "metadata-overlooked",
		"teardown-skipped", "scratch-kept", "cgroup-kept", "payload-idle", "payload-unreached", "payload-nameless", "evidence-empty",
	} {
		if got, err := MutantsNamed([]string{name}); err != nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := MutantsNamed([]string{"canary-missing", "no-such"}); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("an unknown name is told as %v", err)
	}
}

// compare tells the three ends of a mutant apart.
func TestCompare(t *testing.T) {
	const own, other = "step-01/credentials/shadow", "step-01/credentials/ssh-key"
	m := &Mutant{Name: "m", Predicted: []Prediction{turns(hostile.Fell, own, "inside", "host: canary reads")}}
	held := Judge(claimEvidence())
	other1 := held
	other1.ID = other
	fell := func(seen int64) reports.Trial {
		r := claimEvidence()
		r.Claims = append(r.Claims, hostile.Claim{Event: hostile.Happened})
		set(&r, r.Wants[0], seen)
		return Judge(r)
	}
	byInside, byBoth := fell(0), fell(1)
	otherFell := byBoth
	otherFell.ID = other
	for what, c := range map[string]struct {
		trials []reports.Trial
		want   reports.Killing
		says   string
	}{
		"as predicted":           {[]reports.Trial{byBoth, other1}, reports.Killed, "1 of 2"},
		"nothing turned":         {[]reports.Trial{held, other1}, reports.Survived, "nothing noticed"},
		"by one half alone":      {[]reports.Trial{byInside, other1}, reports.Mispredicted, "host: canary reads"},
		"another turned as well": {[]reports.Trial{byBoth, otherFell}, reports.Mispredicted, other},
		"only another turned":    {[]reports.Trial{held, otherFell}, reports.Mispredicted, own},
		"own not asked":          {[]reports.Trial{otherFell}, reports.Mispredicted, "no trial was asked"},
		"nothing asked":          {nil, reports.Survived, ""},
	} {
		got := m.compare(reports.Mutant{}, c.trials)
		if got.Killing != c.want || !strings.Contains(got.Reason, c.says) {
			t.Errorf("%s: %s (%s), want %s with %q", what, got.Killing, got.Reason, c.want, c.says)
		}
	}
	alone := Prediction{Trials: own, Verdict: hostile.Fell, Without: []string{"inside"}}
	if why := alone.foretold(byBoth); why == "" {
		t.Error("the payload noticed as well, and was not to")
	}
}

// The basis of each verdict, over the evidence of one trial spoilt in one way.
func TestBasis(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(*reports.Trial)
		want  []string
	}{
		"nothing":          {func(*reports.Trial) {}, nil},
		"happened":         {func(r *reports.Trial) { r.Claims = append(r.Claims, hostile.Claim{Event: hostile.Happened}) }, []string{"inside"}},
		"otherwise":        {func(r *reports.Trial) { r.Claims[1].Kind = hostile.ENOENT }, []string{"inside: ENOENT at the file ownership"}},
		"seen by the host": {func(r *reports.Trial) { set(r, r.Wants[0], 1) }, []string{"host: canary reads"}},
		"no claim":         {func(r *reports.Trial) { r.Claims = nil }, []string{"unsaid"}},
		"control failed":   {func(r *reports.Trial) { r.Controls[0].Passed = false }, []string{"control: canary"}},
		"lost":             {func(r *reports.Trial) { r.Observations[0].Lost = "why" }, []string{"lost: canary"}},
		"trouble":          {func(r *reports.Trial) { r.Trouble = "none" }, []string{"trouble"}},
	} {
		r := claimEvidence()
		c.spoil(&r)
		if got := Basis(Judge(r)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	r := runnerEvidence()
	r.Ended.Refusal, r.Ended.Reason, r.Ended.ExitCode = hostile.Refusal{}, "exited", 137
	if got := Basis(Judge(r)); !slices.Equal(got, []string{"runner: exited with 137"}) {
		t.Errorf("ended otherwise: %q", got)
	}
}
