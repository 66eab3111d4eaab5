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
	})
	_ = mutate(Mutant{
		Name: "processor-per-process", Title: "RLIMIT_CPU of each process alone", Of: hostile.Processor, Part: reports.PartWall, Source: listed5,
		Also: []string{"processor-relay"},
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) {
			// In whole seconds: the relay hands over before the first is full.
			w.CPULimit = max(time.Second, w.CPU.Truncate(time.Second))
			w.CPU = 0
		},
	})
)
