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
		Predicted: []Prediction{
			turns(hostile.Fell, "step-10/leftover/*", "host: residue scratch", "host: residue cgroups", "host: residue mounts", "host: residue state"),
			// Only here something ran when the result was stored.
			turns(hostile.Fell, "step-10/leftover/cancelled", "host: processes in_cgroup", "host: processes descendants", "host: processes by_files"),
		},
	})
	_ = mutate(Mutant{
		Name: "scratch-kept", Title: "the job's folder and its scratch stay", Of: hostile.Leftover, Part: reports.PartTeardown, Source: listed10,
		Keep:      []runsc.Kept{runsc.KeepScratch, runsc.KeepFolder},
		Predicted: []Prediction{turns(hostile.Fell, "step-10/leftover/*", "host: residue scratch", "host: residue mounts")},
	})
	_ = mutate(Mutant{
		Name: "cgroup-kept", Title: "the job's cgroup stays", Of: hostile.Leftover, Part: reports.PartTeardown, Source: listed10,
		Keep:      []runsc.Kept{runsc.KeepCgroup},
		Predicted: []Prediction{turns(hostile.Fell, "step-10/leftover/*", "host: residue cgroups")},
	})
)
