package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const source10 = "step 10: zero processes, folder absent, measured after the result was stored"

func leftover(route string) Trial {
	return Trial{
		Attempt: hostile.Leftover, Route: route, Expected: hostile.Refusal{Kind: hostile.Ended, Place: hostile.ProcessGroup},
		By: reports.ByHost, Source: source10, Wants: nothingLeft(),
	}
}

// leftBehind is the end that has to come for there to be anything to look for,
// where the route is that end.
var leftBehind = map[string]runsc.Reason{
	"runner-killed": runsc.ReasonLost, "cancelled": runsc.ReasonCancelled, "cpu-capped": runsc.ReasonCPU,
	"wall-capped": runsc.ReasonWall, "memory-capped": runsc.ReasonMemory, "output-capped": runsc.ReasonOutput,
}

// What is left behind side by side does not disturb: each route makes its child
// and goes on, and the payload ends at the end of the last.
var _ = place(
	Cell{Name: "leftover", Cost: 200 * time.Millisecond},
	leftover("daemon"), leftover("session"), leftover("ignore-signals"), leftover("stopped"), leftover("holds-stdout"),
)

var _ = place(Cell{Name: "leftover-runner-killed", Then: KillRunner, Cost: 300 * time.Millisecond}, leftover("runner-killed"))

var _ = place(Cell{Name: "leftover-cancelled", Then: Cancel, Cost: 200 * time.Millisecond}, leftover("cancelled"))

// What a cap leaves behind is looked for behind the jobs that the caps end
// anyway.
func init() {
	beside("processor-spinner", leftover("cpu-capped"))
	beside("wallclock", leftover("wall-capped"))
	beside("memory-anonymous", leftover("memory-capped"))
	beside("disk-stdout", leftover("output-capped"))
}
