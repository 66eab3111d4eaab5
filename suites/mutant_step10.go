package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed10 = "step 10, mutants: teardown skipped, scratch kept, cgroup kept"

var (
	_ = mutate(Mutant{
		Name: "teardown-skipped", Title: "nothing of a job is ended or removed", Of: hostile.Leftover, Part: reports.PartTeardown, Source: listed10,
		Cells: []string{"leftover", "leftover-cancelled"},
		Keep:  []runsc.Kept{runsc.KeepProcesses, runsc.KeepScratch, runsc.KeepCgroup, runsc.KeepFolder},
	})
	_ = mutate(Mutant{
		Name: "scratch-kept", Title: "the job's folder and its scratch stay", Of: hostile.Leftover, Part: reports.PartTeardown, Source: listed10,
		Keep: []runsc.Kept{runsc.KeepScratch, runsc.KeepFolder},
	})
	_ = mutate(Mutant{
		Name: "cgroup-kept", Title: "the job's cgroup stays", Of: hostile.Leftover, Part: reports.PartTeardown, Source: listed10,
		Keep: []runsc.Kept{runsc.KeepCgroup},
	})
)
