// Package reports is the report of one run: its model, and how it is written as
// JSON, as JUnit, as a table for people, and as a signed attestation.
//
// A report holds the evidence and not only the verdicts, so that anyone can
// judge it again later, offline, and must come to the same verdicts.
//
// What this package does not prove: a signature says who vouched for the bytes,
// not that the evidence in them was collected honestly.
package reports

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
)

// Schema identifies the form of report.json; the JSON Schema of that name is
// published beside this file.
const Schema = "https://tenwalls.dev/schema/report/v1"

// Report is one run. Integers stay within 2^53-1, times are UTC.
type Report struct {
	Schema       string            `json:"schema"`
	Run          string            `json:"run"`     // id of the run, "run_..."
	Started      time.Time         `json:"started"` //
	DurationMS   int64             `json:"duration_ms"`
	Outcome      hostile.Outcome   `json:"outcome"`
	Complete     bool              `json:"complete"` // every trial of the set was asked for; only a complete run qualifies a runner
	Interrupted  string            `json:"interrupted,omitempty"`
	Unproven     string            `json:"unproven,omitempty"` // why the run proves nothing, whatever its trials say
	Proof        *ProofRef         `json:"proof,omitempty"`    // nil: none of this host, harness, runtime and configuration
	Harness      Harness           `json:"harness"`
	Host         Host              `json:"host"`
	Runtime      Runtime           `json:"runtime"`
	Image        Image             `json:"image"`
	Profile      string            `json:"profile"`         // "runsc-deny-all-v1"
	ConfigDigest string            `json:"config_digest"`   // of the effective runner configuration, "sha256:<hex>"
	Limits       map[string]int64  `json:"limits"`          // the grant, by the contract's JSON names
	InForce      map[string]string `json:"in_force"`        // what was read back from a running sandbox
	Drift        []string          `json:"drift,omitempty"` // what is otherwise in force than in the last good run, in words
	Trials       []Trial           `json:"trials"`          // by step, attempt and route
	CannotShow   []string          `json:"cannot_show"`     // what no check from inside or beside the sandbox proves
}

// Disqualify takes the run's qualification away, for a reason that lies in no trial.
// A refused run stays refused.
func (r *Report) Disqualify(why string) {
	if r.Outcome != hostile.Refused {
		r.Outcome, r.Unproven = hostile.Unproven, why
	}
}

// ProofRef is the last whole kill matrix that the run can point to.
type ProofRef struct {
	Proof         string    `json:"proof"` // id, "proof_..."
	Finished      time.Time `json:"finished"`
	AgeS          int64     `json:"age_s"`  // whole seconds when the run began
	Digest        string    `json:"digest"` // of the bytes of prove.json
	Killed        int64     `json:"killed"`
	NotApplicable int64     `json:"not_applicable"`
}

// Harness is the program that ran the trials.
type Harness struct {
	Version string `json:"version"`
	Digest  string `json:"digest"` // of its binary, "sha256:<hex>"
}

// Host is the machine.
type Host struct {
	Name          string `json:"name"`
	Kernel        string `json:"kernel"`  // uname -r
	BootID        string `json:"boot_id"` // /proc/sys/kernel/random/boot_id
	Arch          string `json:"arch"`    // GOARCH
	CgroupVersion int    `json:"cgroup_version"`
}

// Runtime is the runsc under test.
type Runtime struct {
	Path     string   `json:"path"`
	Version  string   `json:"version"`
	Digest   string   `json:"digest"` // of its binary, "sha256:<hex>"
	Platform string   `json:"platform"`
	Flags    []string `json:"flags"`
}

// Image is what the jobs ran on.
type Image struct {
	Base    string `json:"base"`    // digest of the base image, "empty" when there is none
	Fixture string `json:"fixture"` // digest of the fixture layer
	Digest  string `json:"digest"`  // digest of both as mounted
}

// By says who is the authority on the refusal of a trial.
type By string

// Authorities.
const (
	ByClaim  By = "claim"  // the payload was there when it was refused and says how
	ByRunner By = "runner" // the refusal ends the job, so the runner's terminal reason names it
	ByHost   By = "host"   // there is nobody left inside to ask
)

// Trial is one route tried once: what was expected, what was recorded, and the
// verdict that follows from the two.
type Trial struct {
	ID           string                  `json:"id"` // "step-05/processor/relay", "contract/census/all"; stable and unique
	Step         int                     `json:"step"`
	Attempt      string                  `json:"attempt"`
	Route        string                  `json:"route"`
	Job          string                  `json:"job"` // the place: which job of the run made the attempt
	Lifts        []hostile.Lift          `json:"lifts"`
	Expected     hostile.Refusal         `json:"expected"`
	By           By                      `json:"by"`
	Source       string                  `json:"source"` // the sentence or row that the expectation stands on
	Wants        []Want                  `json:"wants"`
	Claim        *hostile.Claim          `json:"claim"`            // the one that was judged: the refusal, or what contradicted it
	Claims       []hostile.Claim         `json:"claims,omitempty"` // all of this route
	Said         Said                    `json:"said"`
	Ended        *Ended                  `json:"ended"`
	Observations []observers.Observation `json:"observations"`
	Controls     []observers.Control     `json:"controls"`
	Trouble      string                  `json:"trouble,omitempty"` // why the question could not be asked
	Verdict      hostile.Verdict         `json:"verdict"`
	Reason       string                  `json:"reason"` // one sentence: wall, place, expected and seen
	Started      time.Time               `json:"started"`
	DurationMS   int64                   `json:"duration_ms"`
}

// Said counts what the payload's job printed beside this run's claims.
type Said struct {
	Foreign int `json:"foreign"` // claims without this run's nonce, or of a route not asked
	Noise   int `json:"noise"`   // lines that are no claim
	Beyond  int `json:"beyond"`  // claims beyond the bound
}

// Ended is how the runner says that the job ended, with the last accounting
// that the harness itself read from the job's cgroup.
type Ended struct {
	Reason   string          `json:"reason"` // the runner's closed list: exited, cpu, wall, memory, output, artifact, cancelled, ...
	ExitCode int             `json:"exit_code"`
	Refusal  hostile.Refusal `json:"refusal"` // the reason in the words of the catalogue
	CPUMS    int64           `json:"cpu_ms"`
	WallMS   int64           `json:"wall_ms"`
	Detail   string          `json:"detail,omitempty"`
}

// Rule compares a value with a bound.
type Rule string

// Rules.
const (
	AtMost  Rule = "at most"
	AtLeast Rule = "at least"
	Exactly Rule = "exactly"
)

// Moment says which part of a reading is compared.
type Moment string

// Moments.
const (
	Worst  Moment = "worst"
	After  Moment = "after"
	Growth Moment = "growth" // after less before
)

// Want is one thing that the host must have observed for the trial to hold.
type Want struct {
	Observer string          `json:"observer"`
	Value    string          `json:"value"`
	Moment   Moment          `json:"moment"`
	Rule     Rule            `json:"rule"`
	Bound    int64           `json:"bound"`
	Unit     string          `json:"unit"`
	Breach   hostile.Verdict `json:"breach"` // the verdict when it was observed otherwise: fell, or misnamed, or blind
	Words    string          `json:"words"`  // what is wanted, in words: "no packet to the address at the host's counter"
}
