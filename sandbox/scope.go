package sandbox

import (
	"fmt"

	"tenwalls.dev/harness/sandbox/internal/printable"
)

// Scope says on whose behalf a job runs. It is a label inside the job: the
// host authenticates it independently and grants nothing because of it.
type Scope struct {
	Tenant  string `json:"tenant"`  // who pays and whose data it is; printable, 1 to 255 bytes
	Project string `json:"project"` // the tenant's own division; printable, 1 to 255 bytes
}

func (s Scope) validate() error {
	if err := printable.Check(s.Tenant, maxName); err != nil {
		return fmt.Errorf("tenant: %w", err)
	}
	if err := printable.Check(s.Project, maxName); err != nil {
		return fmt.Errorf("project: %w", err)
	}
	return nil
}
