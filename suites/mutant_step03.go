package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed3 = "step 3, mutants: scratch with no size, scratch a host folder, writable root over --overlay2=root:self, /tmp left to the runtime"

var (
	_ = mutate(Mutant{
		Name: "scratch-unsized", Title: "scratch is a tmpfs without a size", Of: hostile.Disk, Part: reports.PartWall, Source: listed3,
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Scratch = 0 },
		Predicted: unbounded(),
	})
	_ = mutate(Mutant{
		Name: "scratch-host-folder", Title: "scratch is a folder of the host", Of: hostile.Disk, Part: reports.PartWall, Source: listed3,
		Alone: true,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.ScratchFolder = true },
		// The host counts for the job, and every job that writes to scratch writes
		// to the host.
		Predicted: append([]Prediction{turns(hostile.Fell, "step-03/disk/*", "host: space held", "host: space scratch")}, append(unbounded(),
			turns(hostile.Fell, "contract/output/both-streams", "host: space scratch"))...),
	})
	_ = mutate(Mutant{
		Name: "root-overlay-self", Title: "the root is writable over --overlay2=root:self", Of: hostile.Disk, Part: reports.PartWall, Source: listed3,
		Alone: true, Need: emptyBase,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.RootWritable, w.RootOverlay = true, "root:self" },
		// The runtime keeps what is written in a file in the image's own folder,
		// which every sandbox then holds open.
		Predicted: append(rootWritten("host: trees changed"),
			turns(hostile.Fell, "step-08/neighbour/*", "host: mounts foreign_folders")),
	})
	_ = mutate(Mutant{
		Name: "tmp-open", Title: "/tmp is left to the runtime", Of: hostile.Disk, Part: reports.PartWall, Source: listed3 + "; step 7, mutants: /tmp rw",
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.TmpOpen = true },
		Predicted: []Prediction{
			turns(hostile.Fell, "step-03/disk/tmp", "inside"),
			turns(hostile.Fell, "step-07/outside/create", "inside"),
		},
	})
	_ = mutate(Mutant{
		Name: "output-unbounded", Title: "standard output and error have no cap", Of: hostile.Disk, Part: reports.PartWall, Source: "step 3: flooding stdout and stderr is refused at the output cap",
		Also:  []string{"disk-stdout", "disk-stderr"},
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Output = 0 },
		Predicted: []Prediction{
			turns(hostile.Fell, "step-03/disk/std*-flood", "inside", "host: output kept"),
			turns(hostile.Fell, "contract/output/both-streams", "inside", "host: output kept"),
			turns(hostile.Silent, "step-10/leftover/output-capped", "unsaid"), // no cap ended it
		},
	})
	_ = mutate(Mutant{
		Name: "artifact-bound-narrow", Title: "a declared artifact may be one byte", Of: hostile.Artifacts, Part: reports.PartFixture, Source: listedBeyond,
		Job: func(j *sandbox.Job) {
			for i := range j.Outputs {
				j.Outputs[i].MaxBytes = 1
			}
		},
		Predicted: []Prediction{turns(hostile.Misnamed, "contract/artifacts/honest", "host: output artifacts", "runner: artifact cap at the artifact bound")},
	})
	_ = mutate(Mutant{
		Name: "artifact-bound-wide", Title: "a declared artifact may be four times as large", Of: hostile.Disk, Part: reports.PartFixture, Source: "step 3: an oversized artifact is refused at its cap",
		Also: []string{"disk-artifact"},
		Job: func(j *sandbox.Job) {
			for i := range j.Outputs {
				j.Outputs[i].MaxBytes *= 4
			}
		},
		Predicted: []Prediction{turns(hostile.Fell, "step-03/disk/large-artifact", "host: output artifacts")},
	})
)

// unbounded is what comes of the routes that fill scratch, told by the payload.
func unbounded() []Prediction {
	var out []Prediction
	for _, r := range []string{"large-file", "small-files", "fallocate", "mmap", "deleted-file"} {
		out = append(out, turns(hostile.Fell, "step-03/disk/"+r, "inside"))
	}
	return out
}

// emptyBase is the need of a mutant of the root mount: over a base image the
// root is the harness's own read-only overlay, and a writable one does not
// start.
func emptyBase(cfg runsc.Config) string {
	if cfg.Image != "" {
		return "the configuration names a base image, over which the root is the harness's own read-only overlay: a writable root does not start"
	}
	return ""
}
