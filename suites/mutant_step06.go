package suites

import (
	"bytes"
	"os"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed6 = "step 6, mutants: no memory limit (inside an outer guard cgroup), swap allowed"

var (
	_ = mutate(Mutant{
		Name: "memory-unlimited", Title: "the job's cgroup has no memory limit", Of: hostile.Memory, Part: reports.PartWall, Source: listed6,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Memory = 0 },
	})
	_ = mutate(Mutant{
		Name: "swap-allowed", Title: "the job may swap", Of: hostile.Memory, Part: reports.PartWall, Source: listed6,
		Need:  swapSpace,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Swap = -1 },
		Predicted: []Prediction{
			{Trials: "step-06/memory/anonymous", Verdict: hostile.Fell, Basis: []string{"host: memory swap"}},
		},
	})
)

// swapSpace is the need of a machine that swaps (proc_swaps(5): a heading, then
// one line a swap space).
func swapSpace(runsc.Config) string {
	data, err := os.ReadFile("/proc/swaps")
	if err != nil || bytes.Count(bytes.TrimSpace(data), []byte("\n")) == 0 {
		return "this machine has no swap space"
	}
	return ""
}
