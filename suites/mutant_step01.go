package suites

import (
	"errors"
	"os"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed1 = "step 1, mutants: canary 0644, canary missing, job runs as root"

// stolen is what comes of the routes that walk to a canary and open it. The host
// counts for the job, so the routes beside them in it turn as well.
func stolen(more ...Prediction) []Prediction {
	out := []Prediction{
		turns(hostile.Fell, "step-01/credentials/*", "host: canary reads", "host: secrets found"),
		stays("step-01/credentials/*-behind"),
	}
	for _, r := range plain {
		out = append(out, turns(hostile.Fell, "step-01/credentials/"+r, "inside", "host: canary reads", "host: secrets found"))
	}
	return append(out, more...)
}

var plain = []string{"shadow", "ssh-key", "service-account", "cloud-credentials", "symlink", "proc-root"}

// gone is what comes of them where there is nothing to walk to. What is not
// there cannot be watched either.
func gone() []Prediction {
	out := []Prediction{turns(hostile.Blind, "step-01/credentials/*", "control: canary")}
	for _, r := range append([]string{"hard-link", "hard-link-behind", "file-handle", "file-handle-behind"}, plain...) {
		out = append(out, turns(hostile.Misnamed, "step-01/credentials/"+r, "inside: ENOENT at the unknown"))
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
		Predicted: stolen(),
	})
	_ = mutate(Mutant{
		Name: "canary-missing", Title: "the canaries are not there", Of: hostile.Credentials, Part: reports.PartFixture, Source: listed1,
		Layer:     eachCanary(func(layer *os.Root, canary string) error { return layer.Remove(canary) }),
		Predicted: gone(),
	})
	_ = mutate(Mutant{
		Name: "job-as-root", Title: "the job runs as uid and gid 0", Of: hostile.Credentials, Part: reports.PartWall, Source: listed1,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.UID, w.GID = 0, 0 },
		// Owning everything, and with no capability: what asks for one still
		// refuses.
		Predicted: stolen(
			turns(hostile.Misnamed, "step-07/outside/chmod", "inside: EPERM at the unknown"),
			turns(hostile.Misnamed, "step-07/outside/inputs-chmod", "inside: EPERM at the unknown"),
			turns(hostile.Fell, "step-07/outside/proc-sys", "inside"),
			turns(hostile.Fell, "step-07/outside/pseudo", "inside"),
			turns(hostile.Fell, "contract/identity/*", "inside"),
		),
	})
	_ = mutate(Mutant{
		Name: "group-beside", Title: "the job is in one more group, 6", Of: hostile.Identity, Part: reports.PartWall, Source: "runs as nobody, owning nothing",
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Groups = []uint32{6} },
		Predicted: []Prediction{turns(hostile.Fell, "contract/identity/nobody", "inside")},
	})
)
