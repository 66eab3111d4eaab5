package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/sandbox/runsc"
)

// filterRefuses is the refusal of the wall that stands in front of most others.
var filterRefuses = hostile.Refusal{Kind: hostile.EPERM, Place: hostile.EntryPointFilter}

const sourceFilter = "about 60 of about 350 entry points allowed: the filter answers first (EPERM by ERRNO, SIGSYS by TRAP or KILL, as the profile says)"

// The lifts as they are done on the walls of one job.

func liftSockets(w *runsc.Walls) { liftFilter(w, runsc.SocketEntryPoints()) }
func liftFiles(w *runsc.Walls)   { liftFilter(w, runsc.FileEntryPoints()) }

func liftFilter(w *runsc.Walls, more []string) {
	if w.Filter != nil {
		w.Filter = w.Filter.With(more...)
	}
}

func liftProcessorCap(w *runsc.Walls) { w.CPU = 0 }
