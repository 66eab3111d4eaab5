package suites

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed8 = "step 8, mutants: neighbour's folder mounted 0600, mounted 0644, shared parent mounted"

// mountNeighbour gives the job that looks for its neighbour what it looks for,
// its submission in that mode.
func mountNeighbour(mode os.FileMode) func(*Scene, *Cell, *runsc.Walls) {
	return func(s *Scene, c *Cell, w *runsc.Walls) {
		if c.Name != "neighbour-walk" {
			return
		}
		n := s.neighbour
		if err := os.Chmod(filepath.Join(n.Folder, n.Name), mode); err != nil {
			return // nothing falls then, and the mutant survives
		}
		w.Mounts = append(w.Mounts, runsc.Mount{Source: n.Folder, Target: sandbox.InputsPath})
	}
}

var (
	_ = mutate(Mutant{
		Name: "neighbour-mounted-0600", Title: "the neighbour's folder is mounted, its submission mode 0600", Of: hostile.Neighbour, Part: reports.PartWall, Source: listed8,
		Walls: mountNeighbour(0o600),
		// Its bytes are refused to the payload, its name is not; and the host sees
		// the mount, whatever its modes are.
		Predicted: present(),
	})
	_ = mutate(Mutant{
		Name: "neighbour-mounted-0644", Title: "the neighbour's folder is mounted, its submission mode 0644", Of: hostile.Neighbour, Part: reports.PartWall, Source: listed8,
		Walls:     mountNeighbour(0o644),
		Predicted: present(),
	})
	_ = mutate(Mutant{
		Name: "neighbour-parent-mounted", Title: "a folder in which the submissions of both lie is mounted", Of: hostile.Neighbour, Part: reports.PartWall, Source: listed8,
		World: shareParent,
		Walls: func(s *Scene, c *Cell, w *runsc.Walls) {
			if c.Name == "neighbour-walk" {
				w.Mounts = append(w.Mounts, runsc.Mount{Source: s.shared(), Target: sandbox.InputsPath})
			}
		},
		Predicted: present(),
	})
)

// present is what a foreign mount turns: the host counts for the job.
func present() []Prediction {
	return []Prediction{
		turns(hostile.Fell, "step-08/neighbour/*", "host: mounts foreign_mounts"),
		turns(hostile.Fell, "step-08/neighbour/walk", "inside", "host: mounts foreign_mounts"),
	}
}

func (s *Scene) shared() string { return filepath.Join(s.dir, "shared") }

// shareParent lays the neighbour's submission beside another one, as a runner
// would that keeps those of all jobs in one folder.
func shareParent(_ context.Context, s *Scene) error {
	theirs, ours := filepath.Join(s.shared(), "theirs"), filepath.Join(s.shared(), "ours")
	errs := []error{os.MkdirAll(theirs, 0o755), os.MkdirAll(ours, 0o755)}
	errs = append(errs, os.WriteFile(filepath.Join(theirs, s.neighbour.Name), []byte(s.neighbour.Secret+"\n"), 0o644))
	return errors.Join(append(errs, os.WriteFile(filepath.Join(ours, "submission.txt"), []byte("our own\n"), 0o644))...)
}
