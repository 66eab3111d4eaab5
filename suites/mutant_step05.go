package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed5 = "step 5, mutants: no processor cap, per-process cap only"

var (
	_ = mutate(Mutant{
		Name: "processor-uncapped", Title: "neither a cap over the job nor RLIMIT_CPU", Of: hostile.Processor, Part: reports.PartWall, Source: listed5,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.CPU, w.CPULimit = 0, 0 },
		Predicted: []Prediction{
			turns(hostile.Fell, "step-05/processor/*", "runner: wall cap at the wall clock", "host: processor usage"),
		},
	})
	_ = mutate(Mutant{
		Name: "processor-per-process", Title: "RLIMIT_CPU of each process alone", Of: hostile.Processor, Part: reports.PartWall, Source: listed5,
		Cells: []string{"processor-spinner", "processor-relay"},
		// The least limit there is, one second: the relay hands over before it.
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.CPU, w.CPULimit = 0, time.Second },
		Predicted: []Prediction{
			// The payload replaces a spinner that a limit of one process ends.
			turns(hostile.Fell, "step-05/processor/*", "host: processor usage"),
			turns(hostile.Silent, "step-10/leftover/cpu-capped", "unsaid"),
		},
	})
)
