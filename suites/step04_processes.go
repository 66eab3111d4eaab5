package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

func tasks(route string) Trial {
	return Trial{
		Attempt: hostile.Processes, Route: route, By: reports.ByClaim,
		Expected: hostile.Refusal{Kind: hostile.EAGAIN, Place: hostile.ProcessCap},
		Source:   "step 4: the thirty-third process is refused, and the group never exceeds 32",
		Wants:    tasksWithin(),
	}
}

var _ = place(
	Cell{Name: "processes", Cost: 700 * time.Millisecond, Params: processCap},
	tasks("parent"), tasks("chain"), tasks("threads"), tasks("sessions"), tasks("orphans"),
)

// processCap tells the grant, and how long what goes beyond it stays: longer than
// the runtime is not asked for its list.
func processCap(s *Scene) map[string]string {
	return map[string]string{"tasks": text(s.Limits().Processes), "hold_ms": text((2 * listEvery).Milliseconds())}
}
