package reports

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
)

// exampleProof is a matrix with one mutant of each end.
func exampleProof() *Proof {
	digest := "sha256:" + strings.Repeat("ab", 32)
	trial := func(attempt string, v, predicted hostile.Verdict, basis ...string) ProofTrial {
		t := ProofTrial{ID: "step-01/" + attempt + "/shadow", Attempt: attempt, Verdict: v, Predicted: predicted, Basis: basis}
		if v != hostile.Held {
			t.Reason = "expected EACCES at the file ownership, but it happened: \x1b[31mopenat\x1b[0m"
		}
		return t
	}
	mutant := func(name string, k Killing, reason string, trials ...ProofTrial) Mutant {
		return Mutant{
			Name: name, Title: "the canaries are mode 0644", Part: PartFixture, Step: 1, Attempt: "credentials", Source: "step 1, mutants",
			Killing: k, Reason: reason, Trials: trials, DurationMS: 1234,
		}
	}
	p := &Proof{
		Schema: ProofSchema, Proof: "proof_01example", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Finished: time.Date(2026, 1, 2, 3, 8, 5, 0, time.UTC),
		DurationMS: 240_000, Complete: true, Harness: Harness{Version: "v1", Digest: digest},
		Host: Host{Name: "worker", Kernel: "6.12.0", BootID: "b", Arch: "amd64", CgroupVersion: 2}, Runtime: Runtime{Path: "/usr/bin/runsc", Version: "v0", Digest: digest, Platform: "systrap"},
		ConfigDigest: digest, CannotShow: []string{"A mutant shows one way to fail."},
		Baseline: []ProofTrial{trial("credentials", hostile.Held, hostile.Held), trial("census", hostile.Held, hostile.Held)},
		Mutants: []Mutant{
			mutant("canary-world-readable", Killed, "1 of 2 trials turned, each as predicted", trial("credentials", hostile.Fell, hostile.Fell, "inside"), trial("census", hostile.Held, hostile.Held)),
			mutant("canary-missing", Mispredicted, "step-01/credentials/shadow: fell, predicted misnamed", trial("credentials", hostile.Fell, hostile.Misnamed, "inside")),
			mutant("nobody-noticed", Survived, "nothing noticed: all 1 trials held", trial("credentials", hostile.Held, hostile.Fell)),
			mutant("no-scene", NotAsked, "make world: no\x1b[2Jspace"),
			mutant("swap-used", NotApplicable, "this machine has no swap space"),
		},
	}
	p.Outcome = p.Judged()
	return p
}

func TestProofOutcome(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*Proof)
		want   ProofOutcome
	}{
		"as it stands":        {func(*Proof) {}, Disproven},
		"killed":              {func(p *Proof) { p.Mutants = p.Mutants[:1] }, Proven},
		"killed and lacking":  {func(p *Proof) { p.Mutants = []Mutant{p.Mutants[0], p.Mutants[4]} }, Proven},
		"mispredicted":        {func(p *Proof) { p.Mutants = p.Mutants[:2] }, Disproven},
		"survived":            {func(p *Proof) { p.Mutants = []Mutant{p.Mutants[0], p.Mutants[2]} }, Disproven},
		"not asked":           {func(p *Proof) { p.Mutants = []Mutant{p.Mutants[0], p.Mutants[3]} }, NotProven},
		"unknown word":        {func(p *Proof) { p.Mutants = p.Mutants[:1]; p.Mutants[0].Killing = "fine" }, NotProven},
		"baseline fell":       {func(p *Proof) { p.Mutants = p.Mutants[:1]; p.Baseline[0].Verdict = hostile.Blind }, NotProven},
		"interrupted":         {func(p *Proof) { p.Mutants = p.Mutants[:1]; p.Interrupted = "SIGINT" }, NotProven},
		"no mutant":           {func(p *Proof) { p.Mutants = nil }, NoEvidence},
		"no baseline":         {func(p *Proof) { p.Baseline = nil }, NoEvidence},
		"nothing applicable":  {func(p *Proof) { p.Mutants = p.Mutants[4:] }, NoEvidence},
		"survivor, cut short": {func(p *Proof) { p.Interrupted = "SIGINT" }, Disproven},
	} {
		p := exampleProof()
		c.change(p)
		if got := p.Judged(); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

func TestProofGoesThroughJSON(t *testing.T) {
	p := exampleProof()
	data, err := EncodeProof(p)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(data, 0x1b) {
		t.Error("an escape reaches the file")
	}
	back, err := DecodeProof(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := EncodeProof(back)
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("read and written again it differs: %v", err)
	}
	for what, change := range map[string]func([]byte) []byte{
		"another outcome": func(b []byte) []byte { return bytes.Replace(b, []byte(`"disproven"`), []byte(`"proven"`), 1) },
		"unknown field":   func(b []byte) []byte { return bytes.Replace(b, []byte(`"complete"`), []byte(`"x": 1, "complete"`), 1) },
		"twice": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"complete": true`), []byte(`"complete": true, "complete": true`), 1)
		},
		"unknown killing":   func(b []byte) []byte { return bytes.Replace(b, []byte(`"survived"`), []byte(`"fine"`), 1) },
		"one name twice":    func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"canary-missing"`), []byte(`"swap-used"`)) },
		"cut":               func(b []byte) []byte { return b[:len(b)/2] },
		"something behind":  func(b []byte) []byte { return append(bytes.Clone(b), []byte("{}")...) },
		"another schema id": func(b []byte) []byte { return bytes.Replace(b, []byte("proof/v1"), []byte("proof/v2"), 1) },
	} {
		if _, err := DecodeProof(change(bytes.Clone(data))); err == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
}

func TestMatrixIsGolden(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		var b bytes.Buffer
		if err := Matrix(&b, exampleProof(), TableOptions{Width: width, Files: []string{"out/prove.json"}}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if columns(line) > width {
				t.Errorf("%d columns are not %d: %q", columns(line), width, line)
			}
		}
		if strings.ContainsRune(b.String(), 0x1b) {
			t.Error("an escape reaches the terminal")
		}
		golden(t, "matrix-"+map[int]string{60: "60", 80: "80", 120: "120"}[width]+".txt", b.Bytes())
	}
}

func TestProofJUnit(t *testing.T) {
	data, err := ProofJUnit(exampleProof())
	if err != nil {
		t.Fatal(err)
	}
	var doc junitSuites
	if err := xml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Tests != 6 || doc.Failures != 2 || doc.Errors != 1 || len(doc.Suites) != 1 || doc.Suites[0].Skipped != 0 {
		t.Errorf("%d tests, %d failures, %d errors", doc.Tests, doc.Failures, doc.Errors)
	}
	p := exampleProof()
	p.Mutants, p.Baseline[0].Verdict = p.Mutants[:1], hostile.Blind
	data, err = ProofJUnit(p)
	if err != nil || xml.Unmarshal(data, &doc) != nil || doc.Errors != 1 {
		t.Errorf("a baseline that did not hold is %d errors: %v", doc.Errors, err)
	}
}
