package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed2 = "step 2, mutants: filter not loaded without a route, filter not loaded and a route, counter not installed"

func unloadFilter(_ *Scene, _ *Cell, w *runsc.Walls) { w.Filter = nil }

// joinPlace lets the sandbox take over the place's link, with its addresses and
// its routes.
func joinPlace(s *Scene, w *runsc.Walls) {
	w.Network, w.NetNS = "sandbox", s.world.PlacePath()
}

var (
	_ = mutate(Mutant{
		Name: "filter-unloaded", Title: "no entry-point filter is loaded, and no route stands behind it", Of: hostile.Connection, Part: reports.PartWall, Source: listed2,
		Walls: unloadFilter,
	})
	_ = mutate(Mutant{
		Name: "filter-unloaded-and-route", Title: "no entry-point filter is loaded, and the sandbox has a route", Of: hostile.Connection, Part: reports.PartWall, Source: listed2,
		Answer: true,
		Walls: func(s *Scene, c *Cell, w *runsc.Walls) {
			unloadFilter(s, c, w)
			joinPlace(s, w)
		},
	})
	_ = mutate(Mutant{
		Name: "filter-traps", Title: "the filter sends SIGSYS where the profile says EPERM", Of: hostile.Connection, Part: reports.PartWall,
		Source: "step 2: the profile says which, and the wrong one is misnamed",
		Walls: func(s *Scene, _ *Cell, w *runsc.Walls) {
			if w.Filter == nil {
				return
			}
			w.Filter = w.Filter.With()
			w.Filter.Action = "TRAP"
			if s.cfg.EntryPoints.Action == "TRAP" {
				w.Filter.Action = "ERRNO"
			}
		},
	})
	_ = mutate(Mutant{
		Name: "counter-not-installed", Title: "the table of the egress counters is gone", Of: hostile.Connection, Part: reports.PartObserver, Source: listed2,
		Cells: []string{"connection", "metadata"}, Answer: true, // nothing to drop with
		Eyes: func(_ *Scene, e *eyes) error {
			if o, ok := e.all["egress"].(*observers.Egress); ok {
				return o.Close()
			}
			return nil
		},
	})
)
