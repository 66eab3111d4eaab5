// Package sandbox defines bounded evaluation jobs without importing a runtime:
// what a job is ([Job], [Limits]), under which attested controls it may run
// ([Capabilities]), what a broker accepted ([Receipt]), what came back
// ([Result]), and who runs it ([Runner]).
//
// A [Job] is sealed: its digest covers every field, so a later change is
// detected. What crosses the wire is canonical JSON (RFC 8785).
//
// What this package does not prove: that any limit, network rule or profile
// named here is in force anywhere. A digest shows that a job is unchanged, not
// who wrote it; a signature shows who said something, not that it is true;
// [Capabilities] cannot vouch for themselves. Whether the walls stand is for
// the suites to show on a real runtime.
package sandbox

import (
	"context"
	"errors"

	"tenwalls.dev/harness/sandbox/id"
)

// SchemaVersion is the only schema that this package reads and writes.
const SchemaVersion = 1

// ArtifactProducer identifies worker-captured bytes, not a grading verdict.
const ArtifactProducer = "cortex/sandbox"

// NetworkDenied is the only network profile supported by schema one.
const NetworkDenied = "denied"

// PrefixJob identifies a sandbox evaluation job.
const PrefixJob id.Prefix = "sjob"

// ProfileDenyAll requires read-only root and inputs, empty capabilities,
// isolated PID, mount and network namespaces, a non-root identity and enforced
// resource limits.
const ProfileDenyAll = "runsc-deny-all-v1"

// RuntimeRunsc is the only runtime that ProfileDenyAll is defined for.
const RuntimeRunsc = "runsc"

// Folders of the guest. They are guest paths; where the host keeps the bytes
// is the runner's business.
const (
	InputsPath  = "/inputs"  // holds the inputs, read-only
	ScratchPath = "/scratch" // the one writable folder, holds the outputs
)

// Errors on which callers branch; they arrive wrapped, so use [errors.Is].
var (
	// ErrConflict: the key is taken by another job. A runner never replaces a job.
	ErrConflict = errors.New("key belongs to another job")
	// ErrNotFound: the runner knows no job of this identity.
	ErrNotFound = errors.New("job not found")
	// ErrUnqualified: the capabilities do not support the job, or not any more.
	ErrUnqualified = errors.New("capabilities do not support the job")
	// ErrMutated: the bytes are not those that were sealed or signed.
	ErrMutated = errors.New("contents differ from what was sealed")
)

// Runner submits and reconciles jobs by immutable identity. An ambiguous
// Submit must be inspected or retried with the same key, never replaced with a
// host run.
type Runner interface {
	// Capabilities returns the attestation under which jobs are accepted. It
	// is an error, never a zero value, when no valid one is at hand.
	Capabilities(context.Context) (Capabilities, error)
	// Submit accepts a sealed job. It is idempotent by Key: the same job again
	// returns the first receipt, another job under that key [ErrConflict], a
	// job beyond the capabilities [ErrUnqualified], a changed one [ErrMutated].
	Submit(context.Context, Job) (Receipt, error)
	// Inspect returns the durable status, also after a crash of the runner, or
	// [ErrNotFound].
	Inspect(context.Context, id.ID) (JobStatus, error)
	// Cancel asks for the job's end; Inspect tells when it came. Cancelling a
	// job that has ended is no error. It returns [ErrNotFound] for no such job.
	Cancel(context.Context, id.ID) error
	// Collect returns the signed result of a job in a terminal state, or
	// [ErrNotFound].
	Collect(context.Context, id.ID) (Result, error)
}
