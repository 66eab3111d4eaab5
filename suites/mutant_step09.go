package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed9 = "step 9, mutants: a route to it, dropped instead of unroutable, only the internet refused"

var (
	_ = mutate(Mutant{
		Name: "metadata-route", Title: "the sandbox has a route to everything", Of: hostile.Metadata, Part: reports.PartWall, Source: listed9,
		Answer: true,
		Walls:  func(s *Scene, _ *Cell, w *runsc.Walls) { joinPlace(s, w) },
	})
)
