package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/evidence"
)

// proofFile is where the last whole proof is kept, proven or not: an older one
// that was proven says nothing once a later one was not.
func proofFile(stateDir string) string { return filepath.Join(stateDir, "harness", "proof.json") }

// keepProof keeps a proof for the runs to come. A selection of mutants is no
// proof of the whole, nor is what was interrupted.
func keepProof(stateDir string, p *reports.Proof, data []byte) error {
	if !p.Complete || p.Interrupted != "" {
		return nil
	}
	return reports.WriteFile(proofFile(stateDir), data)
}

// provenBy returns the proof that a run can point to: the last whole one, when it
// was proven on this host by this harness with this runtime and configuration.
// Else why says what is amiss.
func provenBy(stateDir string, r *reports.Report) (ref *reports.ProofRef, why string) {
	p, data, err := reports.ReadProof(proofFile(stateDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "no whole proof is kept in " + stateDir
	case err != nil:
		return nil, err.Error()
	case p.Outcome != reports.Proven:
		return nil, fmt.Sprintf("the last whole proof, %s, is %s", p.Proof, p.Outcome)
	}
	for _, c := range []struct{ what, proof, run string }{
		{"harness", p.Harness.Digest, r.Harness.Digest}, {"runtime", p.Runtime.Digest, r.Runtime.Digest},
		{"platform", p.Runtime.Platform, r.Runtime.Platform}, {"configuration", p.ConfigDigest, r.ConfigDigest},
		{"host", p.Host.Name, r.Host.Name}, {"kernel", p.Host.Kernel, r.Host.Kernel},
	} {
		if c.proof != c.run {
			return nil, fmt.Sprintf("the last whole proof, %s, is of another %s: %s, now %s", p.Proof, c.what, c.proof, c.run)
		}
	}
	age := r.Started.Sub(p.Finished)
	if age < 0 {
		return nil, fmt.Sprintf("the last whole proof, %s, is from the future: %s", p.Proof, p.Finished.Format(time.RFC3339))
	}
	return &reports.ProofRef{
		Proof: p.Proof, Finished: p.Finished, AgeS: int64(age / time.Second), Digest: evidence.Digest(data),
		Killed: int64(p.Count(reports.Killed)), NotApplicable: int64(p.Count(reports.NotApplicable)),
	}, ""
}

// requireProof notes the run's proof, and takes its qualification away when one
// is required and there is none young enough.
func requireProof(r *reports.Report, stateDir string, within time.Duration) {
	ref, why := provenBy(stateDir, r)
	r.Proof = ref
	if within <= 0 {
		return
	}
	if ref != nil && time.Duration(ref.AgeS)*time.Second > within {
		why = fmt.Sprintf("the last whole proof, %s, is %s old", ref.Proof, time.Duration(ref.AgeS)*time.Second)
	}
	if why != "" {
		r.Disqualify(fmt.Sprintf("a proof within %s is required: %s: run harness prove", within, why))
	}
}
