package sandbox

import (
	"errors"
	"fmt"
	"maps"

	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/internal/printable"
)

// Input mounts one immutable artifact under [InputsPath], read-only. Path never
// identifies a host path. Directories and links are not inputs.
type Input struct {
	Path string       `json:"path"` // relative to InputsPath, slash-separated, clean
	Ref  evidence.Ref `json:"ref"`
}

// Output declares a required regular file under the guest's scratch directory.
// The host allocates ID before sealing the job so an uncertain upload can be
// reconciled by identity. MediaType is a declaration, not content validation.
// Captured files are restricted evidence. No destination or release grant is
// carried here. Archives remain opaque bytes and are never expanded.
type Output struct {
	ID        id.ID  `json:"id"`
	Path      string `json:"path"` // relative to ScratchPath, slash-separated, clean
	MediaType string `json:"media_type"`
	MaxBytes  int64  `json:"max_bytes"` // bytes, positive; all outputs together are under Limits.ArtifactBytes as well
}

// Job carries no host mount, capability, credential or shell-interpolation
// fields. The host authenticates Principal and Scope independently of this
// payload.
type Job struct {
	SchemaVersion int               `json:"schema_version"`
	ID            id.ID             `json:"id"`        // of PrefixJob
	Key           string            `json:"key"`       // the submitter's idempotency key; printable, 1 to 255 bytes
	Scope         Scope             `json:"scope"`     // a claim, see Scope
	Principal     string            `json:"principal"` // a claim; printable, 1 to 255 bytes
	Image         string            `json:"image"`     // sha256:<64 hex digits>: never a tag
	Argv          []string          `json:"argv"`      // handed to execve(2) as it stands
	Inputs        []Input           `json:"inputs,omitempty"`
	Outputs       []Output          `json:"outputs,omitempty"`
	Env           map[string]string `json:"env,omitempty"` // the whole environment: nothing is inherited
	Network       string            `json:"network"`       // NetworkDenied
	Limits        Limits            `json:"limits"`
	Digest        string            `json:"digest"` // sha256:<hex> over the canonical JSON with Digest empty
}

// maxFiles bounds a job's inputs, and its outputs, in number.
const maxFiles = 1024

// Seal detaches and hashes a schema-one job. It grants no execution authority.
// The result shares no memory with j, and empty collections become nil, so
// that it equals what its JSON decodes to. A digest that j carries is
// replaced. An error says which field schema one does not accept.
func Seal(j Job) (Job, error) {
	sealed := j.detach()
	if err := sealed.check(); err != nil {
		return Job{}, fmt.Errorf("seal job: %w", err)
	}
	digest, err := sealed.digest()
	if err != nil {
		return Job{}, fmt.Errorf("seal job: %w", err)
	}
	sealed.Digest = digest
	return sealed, nil
}

// Validate detects mutation and rejects unsupported execution requests. The
// error wraps [ErrMutated] when the digest is missing or is another job's. A
// job whose digest fits may still have been written by anyone.
func (j Job) Validate() error {
	// The seal comes first, so that tampering is called tampering even where
	// it also breaks a rule.
	digest, err := j.digest()
	if err != nil {
		return fmt.Errorf("validate job: %w", errors.Join(ErrMutated, err))
	}
	if j.Digest != digest {
		return fmt.Errorf("validate job: digest is not %s: %w", digest, ErrMutated)
	}
	if err := j.check(); err != nil {
		return fmt.Errorf("validate job: %w", err)
	}
	return nil
}

// digest covers every field but Digest itself, which is hashed as empty.
func (j Job) digest() (string, error) {
	j.Digest = ""
	return digestOf(j)
}

// detach returns a copy that shares no slice or map with j.
func (j Job) detach() Job {
	j.Argv = append([]string(nil), j.Argv...)
	j.Inputs = append([]Input(nil), j.Inputs...)
	j.Outputs = append([]Output(nil), j.Outputs...)
	if j.Env = maps.Clone(j.Env); len(j.Env) == 0 {
		j.Env = nil
	}
	return j
}

// check applies the rules of schema one to everything but the digest.
func (j Job) check() error {
	if j.SchemaVersion != SchemaVersion {
		return fmt.Errorf("schema_version: %d is not %d", j.SchemaVersion, SchemaVersion)
	}
	if err := j.ID.Validate(); err != nil {
		return fmt.Errorf("id: %w", err)
	}
	if j.ID.Prefix() != PrefixJob {
		return fmt.Errorf("id: prefix %q is not %q", j.ID.Prefix(), PrefixJob)
	}
	if err := printable.Check(j.Key, maxName); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if err := j.Scope.validate(); err != nil {
		return fmt.Errorf("scope: %w", err)
	}
	if err := printable.Check(j.Principal, maxName); err != nil {
		return fmt.Errorf("principal: %w", err)
	}
	if err := evidence.ValidateDigest(j.Image); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := validateExec(j.Argv, j.Env); err != nil {
		return err
	}
	if j.Network != NetworkDenied {
		return fmt.Errorf("network: %.64q is not %q", j.Network, NetworkDenied)
	}
	if err := j.Limits.validate(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	if err := j.checkInputs(); err != nil {
		return fmt.Errorf("inputs: %w", err)
	}
	if err := j.checkOutputs(); err != nil {
		return fmt.Errorf("outputs: %w", err)
	}
	return nil
}

func (j Job) checkInputs() error {
	if len(j.Inputs) > maxFiles {
		return fmt.Errorf("%d files, at most %d", len(j.Inputs), maxFiles)
	}
	paths := make([]string, len(j.Inputs))
	for i, in := range j.Inputs {
		if err := in.Ref.Validate(); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		paths[i] = in.Path
	}
	return validateTree(paths)
}

func (j Job) checkOutputs() error {
	if len(j.Outputs) > maxFiles {
		return fmt.Errorf("%d files, at most %d", len(j.Outputs), maxFiles)
	}
	// An output's identity names bytes that do not exist yet, so it must be
	// nobody else's in this job.
	taken := map[id.ID]struct{}{j.ID: {}}
	for _, in := range j.Inputs {
		taken[in.Ref.ID] = struct{}{}
	}
	paths := make([]string, len(j.Outputs))
	for i, out := range j.Outputs {
		if err := out.ID.Validate(); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		if _, twice := taken[out.ID]; twice {
			return fmt.Errorf("[%d]: id %s is taken in this job", i, out.ID)
		}
		taken[out.ID] = struct{}{}
		if err := evidence.ValidateMediaType(out.MediaType); err != nil {
			return fmt.Errorf("[%d]: media type: %w", i, err)
		}
		if out.MaxBytes < 1 || out.MaxBytes > j.Limits.ArtifactBytes {
			return fmt.Errorf("[%d]: max_bytes: %d is outside 1 to artifact_bytes of %d", i, out.MaxBytes, j.Limits.ArtifactBytes)
		}
		paths[i] = out.Path
	}
	return validateTree(paths)
}
