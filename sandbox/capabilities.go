package sandbox

import (
	"fmt"
	"time"

	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/internal/printable"
)

// Capabilities is a trusted deployment attestation. The adapter must only
// publish Qualification after the pinned worker passes its live isolation
// probes. These values cannot establish their own authenticity.
type Capabilities struct {
	SchemaVersion  int       `json:"schema_version"`
	Runtime        string    `json:"runtime"`         // RuntimeRunsc
	RuntimeDigest  string    `json:"runtime_digest"`  // sha256:<hex> of the runtime's program file
	Profile        string    `json:"profile"`         // ProfileDenyAll
	Qualification  string    `json:"qualification"`   // names the run that passed and its evidence; printable, 1 to 1024 bytes
	QualifiedUntil time.Time `json:"qualified_until"` // the first instant at which it is no longer valid
	Limits         Limits    `json:"limits"`          // the most that a job is granted
}

// Validate checks capability shape and qualification expiry. It does not prove
// the attestation's origin or establish that live isolation probes passed. The
// error wraps [ErrUnqualified].
func (c Capabilities) Validate() error {
	return c.ValidateAt(time.Now())
}

// ValidateAt is Validate at another time than now, for callers with a clock of
// their own and for auditors. It cannot notice a clock that was set back.
func (c Capabilities) ValidateAt(now time.Time) error {
	if err := c.check(now); err != nil {
		return fmt.Errorf("validate capabilities: %w: %w", ErrUnqualified, err)
	}
	return nil
}

// Supports fails closed for missing or expired qualification and excess
// limits; also for another runtime, profile, network or schema. The error
// wraps [ErrUnqualified], or is [Job.Validate]'s when the job itself is at
// fault.
func (c Capabilities) Supports(j Job) error {
	return c.SupportsAt(j, time.Now())
}

// SupportsAt is Supports at another time than now.
func (c Capabilities) SupportsAt(j Job, now time.Time) error {
	if err := c.ValidateAt(now); err != nil {
		return err
	}
	// Also refuses every network but NetworkDenied, which ProfileDenyAll
	// implies, and limits that are not finite.
	if err := j.Validate(); err != nil {
		return err
	}
	if why := j.Limits.excess(c.Limits); why != "" {
		return fmt.Errorf("support job %s: %w: limits: %s", j.ID, ErrUnqualified, why)
	}
	return nil
}

func (c Capabilities) check(now time.Time) error {
	if c.SchemaVersion != SchemaVersion {
		return fmt.Errorf("schema_version: %d is not %d", c.SchemaVersion, SchemaVersion)
	}
	if c.Runtime != RuntimeRunsc {
		return fmt.Errorf("runtime: %.64q is not %q", c.Runtime, RuntimeRunsc)
	}
	if err := evidence.ValidateDigest(c.RuntimeDigest); err != nil {
		return fmt.Errorf("runtime_digest: %w", err)
	}
	if c.Profile != ProfileDenyAll {
		return fmt.Errorf("profile: %.64q is not %q", c.Profile, ProfileDenyAll)
	}
	if err := printable.Check(c.Qualification, maxText); err != nil {
		return fmt.Errorf("qualification: %w", err)
	}
	if !now.Before(c.QualifiedUntil) {
		return fmt.Errorf("qualified_until: expired at %s", c.QualifiedUntil.UTC().Format(time.RFC3339))
	}
	if err := c.Limits.validate(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	return nil
}
