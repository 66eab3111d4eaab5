package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

const source5 = "step 5: killed, recorded against the processor cap: which cap was recorded is the assertion"

func spin(route string) *Cell { return spinUnder(route, nil) }

func spinUnder(route string, change func(*runsc.Walls)) *Cell {
	return spinFor(Cell{Name: "processor-" + route, Cost: 2 * time.Second, Params: cpuCap, Change: change}, route)
}

// spinHalf asks for half of the grant: a job's own, lower limit is held as well.
func spinHalf(route string) *Cell {
	return spinFor(Cell{
		Name: "processor-" + route, Cost: time.Second, Params: cpuCap,
		Limits: func(l *sandbox.Limits) { l.CPUMillis = max(1000, l.CPUMillis/2) },
	}, route)
}

func spinFor(c Cell, route string) *Cell {
	return place(c,
		Trial{
			Attempt: hostile.Processor, Route: route, Expected: endings["cpu"], By: reports.ByRunner, Source: source5,
			Wants: processorTime(),
		})
}

var (
	_ = spin("spinner")
	_ = spinHalf("threads")
	_ = spin("forks")
	_ = spinUnder("relay", shortLimit)
	_ = spinHalf("ignore-sigxcpu")
	_ = spinHalf("system-calls")
)

var _ = place(
	Cell{
		Name: "processor-limit-behind", Cost: 1200 * time.Millisecond, Params: cpuCap,
		Lifts: []hostile.Lift{hostile.LiftProcessorCap}, Change: liftProcessorCap,
	},
	Trial{
		Attempt: hostile.Processor, Route: "limit-behind", By: reports.ByClaim,
		Expected: hostile.Refusal{Kind: hostile.CPULimit, Place: hostile.ProcessLimit},
		Source:   "step 5: behind the job-wide cap stands the guest kernel's RLIMIT_CPU per process (setrlimit(2))",
		Wants:    processorBounded(),
	})

// shortLimit makes each child of the relay hand over within a second, so that
// it takes several to reach the cap over the job.
func shortLimit(w *runsc.Walls) { w.CPULimit = time.Second }

func cpuCap(s *Scene) map[string]string {
	return map[string]string{"cpu_ms": text(s.Limits().CPUMillis)}
}
