package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

const source10 = "step 10: zero processes, folder absent, measured after the result was stored"

func leftover(route string) Trial {
	return Trial{
		Attempt: hostile.Leftover, Route: route, Expected: hostile.Refusal{Kind: hostile.Ended, Place: hostile.ProcessGroup},
		By: reports.ByHost, Source: source10, Wants: nothingLeft(),
	}
}

func leave(route string, then Act) *Cell {
	return place(Cell{Name: "leftover-" + route, Then: then, Cost: 150 * time.Millisecond}, leftover(route))
}

var (
	_ = leave("daemon", LetRun)
	_ = leave("session", LetRun)
	_ = leave("ignore-signals", LetRun)
	_ = leave("stopped", LetRun)
	_ = leave("holds-stdout", LetRun)
	_ = leave("runner-killed", KillRunner)
	_ = leave("cancelled", Cancel)
)

// What a cap leaves behind is looked for behind the jobs that the caps end
// anyway.
func init() {
	beside("processor-spinner", leftover("cpu-capped"))
	beside("wallclock", leftover("wall-capped"))
	beside("memory-anonymous", leftover("memory-capped"))
	beside("disk-stdout", leftover("output-capped"))
}
