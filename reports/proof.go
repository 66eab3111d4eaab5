package reports

import (
	"time"

	"tenwalls.dev/harness/hostile"
)

// ProofSchema identifies the form of prove.json; the JSON Schema of that name
// is published beside this file.
const ProofSchema = "https://tenwalls.dev/schema/proof/v1"

// Proof is the kill matrix of one host, harness and runner: every check shown
// able to fail. It holds no evidence, only what was predicted and what came:
// the evidence of a mutant is of a sandbox that nobody uses.
type Proof struct {
	Schema       string       `json:"schema"`
	Proof        string       `json:"proof"` // id, "proof_..."
	Started      time.Time    `json:"started"`
	Finished     time.Time    `json:"finished"`
	DurationMS   int64        `json:"duration_ms"`
	Outcome      ProofOutcome `json:"outcome"`
	Complete     bool         `json:"complete"` // every mutant of the set was asked for
	Interrupted  string       `json:"interrupted,omitempty"`
	Harness      Harness      `json:"harness"`
	Host         Host         `json:"host"`
	Runtime      Runtime      `json:"runtime"`
	ConfigDigest string       `json:"config_digest"`
	// Baseline is the row with nothing mutated. While it does not hold, a
	// mutant's fall shows nothing.
	Baseline []ProofTrial `json:"baseline"`
	Mutants  []Mutant     `json:"mutants"`
	// CannotShow is what a whole matrix does not prove.
	CannotShow []string `json:"cannot_show"`
}

// ProofOutcome is the judgement of a matrix.
type ProofOutcome string

// Outcomes of a matrix.
const (
	Proven     ProofOutcome = "proven"      // every mutant was killed as predicted, or is not applicable here
	Disproven  ProofOutcome = "disproven"   // a mutant survived, or turned what was not predicted
	NotProven  ProofOutcome = "unproven"    // the baseline did not hold, or a mutant could not be asked
	NoEvidence ProofOutcome = "no evidence" // nothing was asked
)

// Part says what a mutant mutates.
type Part string

// Parts.
const (
	PartWall     Part = "wall"     // the runner's configuration, for this mutant's jobs
	PartFixture  Part = "fixture"  // what the harness placed in the world
	PartTeardown Part = "teardown" // what the runner removes
	PartPayload  Part = "payload"  // the program inside
	PartObserver Part = "observer" // one pair of eyes
	PartControl  Part = "control"  // one positive control
	PartJudge    Part = "judge"    // the evidence that it is fed
)

// Killing is what became of a mutant.
type Killing string

// What becomes of a mutant.
const (
	Killed        Killing = "killed"         // its check turned as predicted, and nothing else turned
	Survived      Killing = "survived"       // nothing noticed it
	Mispredicted  Killing = "mispredicted"   // noticed otherwise than predicted, or something else turned
	NotAsked      Killing = "not asked"      // the harness or the runner failed before it could be seen
	NotApplicable Killing = "not applicable" // this host lacks what the mutant needs
)

// Mutant is one line of the matrix.
type Mutant struct {
	Name       string       `json:"name"`
	Title      string       `json:"title"` // what was lowered or broken
	Part       Part         `json:"part"`
	Step       int          `json:"step"`              // of the attempt whose check has to notice; 0 for a contract check and for none
	Attempt    string       `json:"attempt,omitempty"` // empty when it is not one attempt's
	Source     string       `json:"source"`            // the row that lists it
	Killing    Killing      `json:"killing"`
	Reason     string       `json:"reason"` // one sentence
	Trials     []ProofTrial `json:"trials"`
	DurationMS int64        `json:"duration_ms"`
}

// ProofTrial is one trial under a mutant.
type ProofTrial struct {
	ID        string          `json:"id"`
	Attempt   string          `json:"attempt"`
	Verdict   hostile.Verdict `json:"verdict"`
	Predicted hostile.Verdict `json:"predicted"`
	Basis     []string        `json:"basis,omitempty"`  // on which evidence the verdict stands
	Reason    string          `json:"reason,omitempty"` // of a verdict other than held
}

// Judged is the outcome that follows from the lines of a matrix, worst first: a
// survivor outweighs what could not be asked.
func (p *Proof) Judged() ProofOutcome {
	if len(p.Mutants) == 0 || len(p.Baseline) == 0 {
		return NoEvidence
	}
	out := Proven
	for _, t := range p.Baseline {
		if t.Verdict != hostile.Held {
			out = NotProven
		}
	}
	for _, m := range p.Mutants {
		switch m.Killing {
		case Killed, NotApplicable:
		case Survived, Mispredicted:
			return Disproven
		default:
			out = NotProven
		}
	}
	switch {
	case p.Interrupted != "":
		return NotProven
	case out == Proven && p.Count(Killed) == 0:
		return NoEvidence // where nothing was applicable, nothing was shown
	}
	return out
}

// Count returns how many mutants became that.
func (p *Proof) Count(k Killing) (n int) {
	for _, m := range p.Mutants {
		if m.Killing == k {
			n++
		}
	}
	return n
}
