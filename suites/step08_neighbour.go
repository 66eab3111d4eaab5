package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

func neighbour(route string) Trial {
	return Trial{
		Attempt: hostile.Neighbour, Route: route, By: reports.ByClaim,
		Expected: hostile.Refusal{Kind: hostile.Absent, Place: hostile.MountTable},
		Source:   "step 8: not present, which is different from refused: it was never in the mount table",
		Wants:    grantsOnly(),
	}
}

// neighbourCell is a real job that holds a secret for as long as the others run.
var neighbourCell = place(Cell{Name: "neighbour", Witness: true, Cost: 100 * time.Millisecond})

var _ = place(
	Cell{Name: "neighbour-walk", Beside: "neighbour", Cost: 400 * time.Millisecond, Params: neighbourParams},
	neighbour("walk"), neighbour("known-path"),
	Trial{
		Attempt: hostile.Neighbour, Route: "processes", By: reports.ByClaim,
		Expected: hostile.Refusal{Kind: hostile.Absent, Place: hostile.OwnNamespaces},
		Source:   "step 8: no other job in the view at all", Wants: grantsOnly(),
	},
)

// grantedCell is the control of the mount table's observer: a throwaway sandbox
// that is granted the neighbour's folder, which the observer has to report.
var grantedCell = place(Cell{
	Name: "neighbour-granted", Witness: true, Beside: "neighbour", Cost: 100 * time.Millisecond,
	Lifts: []hostile.Lift{hostile.LiftNeighbour},
})

func grantNeighbour(folder string) func(*runsc.Walls) {
	return func(w *runsc.Walls) {
		// A target that the image lacks would be made in it by the runtime.
		w.Mounts = append(w.Mounts, runsc.Mount{Source: folder, Target: sandbox.InputsPath})
	}
}

func neighbourParams(s *Scene) map[string]string {
	n := s.Neighbour()
	return map[string]string{"neighbour_name": n.Name, "neighbour_path": n.Folder, "neighbour_secret_sha256": digestOf(n.Secret)}
}
