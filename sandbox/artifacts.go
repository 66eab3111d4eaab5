package sandbox

import (
	"errors"
	"fmt"
	"path"

	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// OutputSource identifies the guest path in this job, in the form
// <job id>@<job digest>:<guest path>. It is an opaque provenance reference,
// never a host path or a URL to fetch. Callers must validate the job and
// require output to be one of its signed declarations.
func (j Job) OutputSource(output Output) string {
	// The digest is part of it because an id alone can be given to two jobs.
	return string(j.ID) + "@" + j.Digest + ":" + path.Join(ScratchPath, output.Path)
}

// ValidateArtifacts binds captured references to the signed declarations: each
// reference carries the identity, media type and source of one declared output
// and the producer [ArtifactProducer], no output is captured twice, none is
// above its MaxBytes, and all together are within Limits.ArtifactBytes. Set
// complete for an exited job; failed attempts may retain a verified subset.
//
// This checks metadata only. It grants no access and proves no task
// correctness. A job that does not validate binds nothing, and is an error.
func (j Job) ValidateArtifacts(refs []evidence.Ref, complete bool) error {
	if err := j.Validate(); err != nil {
		return fmt.Errorf("validate artifacts: %w", err)
	}
	missing := make(map[id.ID]Output, len(j.Outputs))
	for _, out := range j.Outputs {
		missing[out.ID] = out
	}
	left := j.Limits.ArtifactBytes
	for _, ref := range refs {
		if err := ref.Validate(); err != nil {
			return fmt.Errorf("validate artifacts: %w", err)
		}
		out, ok := missing[ref.ID]
		if !ok {
			return fmt.Errorf("validate artifacts: %s: not declared, or captured twice", ref.ID)
		}
		delete(missing, ref.ID)
		if err := j.bind(ref, out); err != nil {
			return fmt.Errorf("validate artifacts: %s: %w", ref.ID, err)
		}
		if left -= ref.Size; left < 0 {
			return fmt.Errorf("validate artifacts: %s: together above artifact_bytes of %d", ref.ID, j.Limits.ArtifactBytes)
		}
	}
	if !complete {
		return nil
	}
	var errs []error
	for _, out := range j.Outputs {
		if _, absent := missing[out.ID]; absent {
			errs = append(errs, fmt.Errorf("validate artifacts: %s: required output %q was not captured", out.ID, out.Path))
		}
	}
	return errors.Join(errs...)
}

// bind compares one reference with the output that it claims to be.
func (j Job) bind(ref evidence.Ref, out Output) error {
	switch {
	case ref.Producer != ArtifactProducer:
		return fmt.Errorf("producer %q is not %q", ref.Producer, ArtifactProducer)
	case ref.Source != j.OutputSource(out):
		return fmt.Errorf("source %q is not that of output %q of this job", ref.Source, out.Path)
	case ref.MediaType != out.MediaType:
		return fmt.Errorf("media type %q is not the declared %q", ref.MediaType, out.MediaType)
	case ref.Size > out.MaxBytes:
		return fmt.Errorf("%d bytes, above max_bytes of %d", ref.Size, out.MaxBytes)
	}
	return nil
}
