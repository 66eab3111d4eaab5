package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed7 = "step 7, mutants: inputs rw, root rw, /tmp rw"

var (
	_ = mutate(Mutant{
		Name: "root-writable", Title: "the root is writable, down to the image on the host", Of: hostile.Outside, Part: reports.PartWall, Source: listed7,
		Need:  emptyBase,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.RootWritable, w.RootOverlay = true, "none" },
	})
)
