package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed4 = "step 4, mutants: no limit, limit 64, host pids.max alone, limit per parent"

var (
	_ = mutate(Mutant{
		Name: "processes-unlimited", Title: "no RLIMIT_NPROC", Of: hostile.Processes, Part: reports.PartWall, Source: listed4,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Processes = 0 },
		// Some end by the processor cap before they can tell.
		Predicted: []Prediction{turns(hostile.Fell, "step-04/processes/*")},
	})
	_ = mutate(Mutant{
		Name: "processes-twice", Title: "RLIMIT_NPROC is twice the grant", Of: hostile.Processes, Part: reports.PartWall, Source: listed4,
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Processes *= 2 },
		Predicted: []Prediction{turns(hostile.Fell, "step-04/processes/*", "inside")},
	})
	_ = mutate(Mutant{
		Name: "processes-host-alone", Title: "pids.max of the job's cgroup alone, no RLIMIT_NPROC", Of: hostile.Processes, Part: reports.PartWall, Source: listed4,
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Processes, w.HostTasks = 0, min(w.HostTasks, 96) },
		Predicted: []Prediction{turns(hostile.Fell, "step-04/processes/*")},
	})
	_ = mutate(Mutant{
		Name: "processes-per-parent", Title: "a limit that counts each task's own children, played by the payload", Of: hostile.Processes, Part: reports.PartPayload, Source: listed4,
		Order:     map[string]string{"per_parent": "32"},
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Processes = 0 },
		Predicted: []Prediction{turns(hostile.Fell, "step-04/processes/*")},
	})
)
