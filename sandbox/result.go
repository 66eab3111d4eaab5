package sandbox

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"fmt"

	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/internal/printable"
)

// Result is bounded output from an authenticated runner. The candidate's
// stdout never supplies a trusted verdict; protected grading evaluates it
// separately.
type Result struct {
	JobDigest string         `json:"job_digest"`
	State     State          `json:"state"`            // terminal
	ExitCode  int            `json:"exit_code"`        // as the runner saw it; meaningful when State is StateExited
	Reason    string         `json:"reason"`           // what ended the job, in the runner's words; printable, 1 to 1024 bytes
	Stdout    []byte         `json:"stdout,omitempty"` // hostile bytes
	Stderr    []byte         `json:"stderr,omitempty"` // hostile bytes
	Artifacts []evidence.Ref `json:"artifacts,omitempty"`
	Signature []byte         `json:"signature,omitempty"` // 64 bytes; left out of what is signed
}

// SignResult returns r, detached, under the runner's Ed25519 signature over
// canonical JSON with Signature left out; one that r carries is replaced.
func SignResult(r Result, key crypto.Signer) (Result, error) {
	r.Stdout, r.Stderr = bytes.Clone(r.Stdout), bytes.Clone(r.Stderr)
	r.Artifacts = append([]evidence.Ref(nil), r.Artifacts...)
	if err := r.check(); err != nil {
		return Result{}, fmt.Errorf("sign result: %w", err)
	}
	message, err := r.message()
	if err != nil {
		return Result{}, fmt.Errorf("sign result: %w", err)
	}
	if r.Signature, err = sign(key, message); err != nil {
		return Result{}, fmt.Errorf("sign result: %w", err)
	}
	return r, nil
}

// Verify checks the signature against the runner's key, and the shape of what
// was signed. The error wraps [ErrMutated] when the signature does not fit. It
// does not compare the result with its job: the caller compares JobDigest, and
// gives Artifacts to [Job.ValidateArtifacts].
func (r Result) Verify(pub ed25519.PublicKey) error {
	message, err := r.message()
	if err != nil {
		return fmt.Errorf("verify result: %w", err)
	}
	if err := verify(pub, message, r.Signature); err != nil {
		return fmt.Errorf("verify result: %w", err)
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("verify result: %w", err)
	}
	return nil
}

func (r Result) message() ([]byte, error) {
	r.Signature = nil
	return Canonical(r)
}

func (r Result) check() error {
	if err := evidence.ValidateDigest(r.JobDigest); err != nil {
		return fmt.Errorf("job_digest: %w", err)
	}
	if !r.State.Terminal() {
		return fmt.Errorf("state: %.32q is not terminal", r.State)
	}
	if err := printable.Check(r.Reason, maxText); err != nil {
		return fmt.Errorf("reason: %w", err)
	}
	for i, ref := range r.Artifacts {
		if err := ref.Validate(); err != nil {
			return fmt.Errorf("artifacts[%d]: %w", i, err)
		}
	}
	return nil
}
