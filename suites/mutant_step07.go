package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed7 = "step 7, mutants: inputs rw, root rw, /tmp rw"

var (
	_ = mutate(Mutant{
		Name: "inputs-writable", Title: "the inputs are mounted writable", Of: hostile.Outside, Part: reports.PartWall, Source: listed7,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.InputsWritable = true },
		// The host compares the job's trees as a whole, so every route of a job
		// with inputs turns.
		Predicted: []Prediction{
			turns(hostile.Fell, "step-07/outside/*", "host: trees changed"),
			turns(hostile.Fell, "step-07/outside/inputs-*", "inside", "host: trees changed", "host: mounts inputs_writable"),
			turns(hostile.Fell, "step-07/outside/inputs-remount", "host: mounts inputs_writable"),
		},
	})
	_ = mutate(Mutant{
		Name: "root-writable", Title: "the root is writable, down to the image on the host", Of: hostile.Outside, Part: reports.PartWall, Source: listed7,
		Need:      emptyBase,
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.RootWritable, w.RootOverlay = true, "none" },
		Predicted: rootWritten("host: trees changed", "host: mounts root_writable"),
	})
)

// rootWritten is what a root that can be written to turns. The host compares the
// image as a whole, so every route of step 7 turns.
func rootWritten(basis ...string) []Prediction {
	out := []Prediction{
		turns(hostile.Fell, "step-03/disk/*", "host: space held"),
		turns(hostile.Fell, "step-03/disk/root", "inside", "host: space held"),
		turns(hostile.Fell, "step-07/outside/*", basis...),
	}
	for _, r := range []string{"create", "append", "truncate", "rename", "link", "chmod", "xattr"} {
		out = append(out, turns(hostile.Fell, "step-07/outside/"+r, "inside", "host: trees changed"))
	}
	return out
}
