package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/sandbox/runsc"
)

// filterRefuses is the refusal of the wall that stands in front of most others.
var filterRefuses = hostile.Refusal{Kind: hostile.EPERM, Place: hostile.EntryPointFilter}

const sourceFilter = "about 60 of about 350 entry points allowed: the filter answers first (EPERM by ERRNO, SIGSYS by TRAP or KILL, as the profile says)"

// The lifts as they are done on the walls of one job.

func liftSockets(w *runsc.Walls) { liftFilter(w, runsc.SocketEntryPoints()) }

// liftFiles lets clone make namespaces as well: with every capability in its own
// the payload hears whether it was the filter that said EPERM to mount, or the
// kernel for want of a capability.
func liftFiles(w *runsc.Walls) {
	liftFilter(w, runsc.FileEntryPoints())
	if w.Filter != nil {
		w.Filter.Namespaces = true
	}
}

func liftFilter(w *runsc.Walls, more []string) {
	if w.Filter != nil {
		w.Filter = w.Filter.With(more...)
	}
}

// liftSetUID has the runtime heed set-user-id bits, which it ignores by itself:
// what refuses behind that is no_new_privs.
func liftSetUID(w *runsc.Walls) { w.SetUID = true }

// liftProcessorCap leaves the guest kernel's limit of one process, which stands
// behind the cap, at one second: the trial is then as short as it can be, and a
// limit that is enforced at one second is enforced at any.
func liftProcessorCap(w *runsc.Walls) { w.CPU, w.CPULimit = 0, time.Second }
