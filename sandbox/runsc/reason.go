package runsc

import "tenwalls.dev/harness/sandbox"

// Reason says why a job ended. The list is closed: it is what Result.Reason
// holds, and which cap ended a job is itself the evidence.
type Reason string

// Terminal reasons.
const (
	ReasonExited    Reason = "exited"    // the program ended by itself; ExitCode is its own
	ReasonCPU       Reason = "cpu"       // processor time over the whole job, by the host's accounting
	ReasonWall      Reason = "wall"      // wall clock
	ReasonMemory    Reason = "memory"    // the kernel's OOM killer in the job's memory cgroup
	ReasonOutput    Reason = "output"    // standard output and standard error together
	ReasonArtifact  Reason = "artifact"  // it exited, and a declared artifact was missing, refused or too large
	ReasonCancelled Reason = "cancelled" // Cancel was called
	ReasonStart     Reason = "start"     // the runtime did not start it; Detail has its words
	ReasonRuntime   Reason = "runtime"   // the runtime itself died under the job
	ReasonInput     Reason = "input"     // an input could not be had as it was sealed
	ReasonLost      Reason = "lost"      // the runner died under the job; nothing is known of how far it came
	ReasonTeardown  Reason = "teardown"  // the runner could not end something of it, or not remove it; Detail says what, and what it would have ended by
)

// Reasons returns every terminal reason in a fixed order.
func Reasons() []Reason {
	return []Reason{
		ReasonExited, ReasonCPU, ReasonWall, ReasonMemory, ReasonOutput, ReasonArtifact, ReasonCancelled, ReasonStart,
		ReasonRuntime, ReasonInput, ReasonLost, ReasonTeardown,
	}
}

// State returns the contract's state of a job that ended so. A job that a cap
// ended has failed: it did not exit.
func (r Reason) State() sandbox.State {
	switch r {
	case ReasonExited:
		return sandbox.StateExited
	case ReasonCancelled:
		return sandbox.StateCancelled
	default:
		return sandbox.StateFailed
	}
}
