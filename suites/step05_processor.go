package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
)

const source5 = "step 5: killed, recorded against the processor cap: which cap was recorded is the assertion"

func spin(route string) *Cell {
	return place(
		Cell{Name: "processor-" + route, Cost: 2 * time.Second, Params: cpuCap},
		Trial{
			Attempt: hostile.Processor, Route: route, Expected: endings["cpu"], By: reports.ByRunner, Source: source5,
			Wants: processorTime(),
		})
}

var (
	_ = spin("spinner")
	_ = spin("threads")
	_ = spin("forks")
	_ = spin("relay")
	_ = spin("ignore-sigxcpu")
	_ = spin("system-calls")
)

var _ = place(
	Cell{
		Name: "processor-limit-behind", Cost: 2200 * time.Millisecond, Params: cpuCap,
		Lifts: []hostile.Lift{hostile.LiftProcessorCap}, Change: liftProcessorCap,
		// The limit stands at twice the cap, so half the grant keeps the trial short.
		Limits: func(l *sandbox.Limits) { l.CPUMillis = max(1000, l.CPUMillis/2) },
	},
	Trial{
		Attempt: hostile.Processor, Route: "limit-behind", By: reports.ByClaim,
		Expected: hostile.Refusal{Kind: hostile.CPULimit, Place: hostile.ProcessLimit},
		Source:   "step 5: behind the job-wide cap stands the guest kernel's RLIMIT_CPU per process (setrlimit(2))",
		Wants:    processorBounded(),
	})

func cpuCap(s *Scene) map[string]string {
	return map[string]string{"cpu_ms": text(s.Limits().CPUMillis)}
}
