package suites

import (
	"bytes"
	"os"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed6 = "step 6, mutants: no memory limit (inside an outer guard cgroup), swap allowed"

func allowSwap(_ *Scene, _ *Cell, w *runsc.Walls) { w.Swap = -1 }

var (
	_ = mutate(Mutant{
		Name: "memory-unlimited", Title: "the job's cgroup has no memory limit", Of: hostile.Memory, Part: reports.PartWall, Source: listed6,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Memory = 0 },
		Predicted: []Prediction{
			turns(hostile.Fell, "step-06/memory/*", "inside", "host: memory peak"),
			turns(hostile.Silent, "step-10/leftover/memory-capped", "unsaid"), // no cap of memory ended it
			turns(hostile.Fell, "contract/limits/memory", "host: limits memory"),
		},
		Foretell: func() []Prediction {
			if perController(runsc.Config{}) != "" {
				return nil // version 2 limits swap by itself (memory.swap.max)
			}
			return []Prediction{turns(hostile.Fell, "contract/limits/swap", "host: limits swap")} // beyond memory, which has no end
		},
	})
	_ = mutate(Mutant{
		Name: "swap-allowed", Title: "the job may swap", Of: hostile.Granted, Part: reports.PartWall, Source: listed6,
		Need: func(runsc.Config) string {
			if swaps() {
				return "this machine has swap space: swap-used asks more"
			}
			return ""
		},
		Walls:     allowSwap,
		Predicted: []Prediction{turns(hostile.Fell, "contract/limits/swap", "host: limits swap")},
	})
	_ = mutate(Mutant{
		Name: "swap-used", Title: "the job may swap, and has where to", Of: hostile.Memory, Part: reports.PartWall, Source: listed6,
		Need: func(runsc.Config) string {
			if !swaps() {
				return "this machine has no swap space"
			}
			return ""
		},
		Swaps: true,
		Walls: allowSwap,
		Predicted: []Prediction{
			turns(hostile.Fell, "step-06/memory/*", "host: memory swap"),
			turns(hostile.Fell, "contract/limits/swap", "host: limits swap"),
		},
	})
)

// swaps tells whether the machine has swap space (proc_swaps(5): a heading, then
// one line a space).
func swaps() bool {
	data, err := os.ReadFile("/proc/swaps")
	return err == nil && bytes.Contains(bytes.TrimSpace(data), []byte("\n"))
}
