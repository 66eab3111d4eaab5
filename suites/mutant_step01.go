package suites

import (
	"errors"
	"os"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed1 = "step 1, mutants: canary 0644, canary missing, job runs as root"

// plainly are the routes that walk to a canary and open it.
func plainly(v hostile.Verdict, basis ...string) []Prediction {
	var out []Prediction
	for _, r := range []string{"shadow", "ssh-key", "service-account", "cloud-credentials", "symlink", "proc-root"} {
		out = append(out, Prediction{Trials: "step-01/credentials/" + r, Verdict: v, Basis: basis})
	}
	return out
}

// eachCanary makes a change of the fixture layer out of one of a file.
func eachCanary(do func(layer *os.Root, canary string) error) func(*os.Root, []string) error {
	return func(layer *os.Root, canaries []string) error {
		var errs []error
		for _, c := range canaries {
			errs = append(errs, do(layer, c))
		}
		return errors.Join(errs...)
	}
}

var worldReadable = eachCanary(func(layer *os.Root, canary string) error { return layer.Chmod(canary, 0o644) })

var (
	_ = mutate(Mutant{
		Name: "canary-world-readable", Title: "the canaries are mode 0644", Of: hostile.Credentials, Part: reports.PartFixture, Source: listed1,
		Layer:     worldReadable,
		Predicted: plainly(hostile.Fell, "inside", "host: canary reads"),
	})
	_ = mutate(Mutant{
		Name: "canary-missing", Title: "the canaries are not there", Of: hostile.Credentials, Part: reports.PartFixture, Source: listed1,
		Layer: eachCanary(func(layer *os.Root, canary string) error { return layer.Remove(canary) }),
		// What is not there cannot be watched either.
		Predicted: append([]Prediction{{Trials: "step-01/credentials/*", Verdict: hostile.Blind, Basis: []string{"control: canary"}}},
			plainly(hostile.Misnamed)...),
	})
	_ = mutate(Mutant{
		Name: "job-as-root", Title: "the job runs as uid and gid 0", Of: hostile.Credentials, Part: reports.PartWall, Source: listed1,
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.UID, w.GID = 0, 0 },
		Predicted: plainly(hostile.Fell, "inside", "host: canary reads"),
	})
)
