package suites

import (
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
	})
	_ = mutate(Mutant{
		Name: "neighbour-mounted-0644", Title: "the neighbour's folder is mounted, its submission mode 0644", Of: hostile.Neighbour, Part: reports.PartWall, Source: listed8,
		Walls: mountNeighbour(0o644),
	})
	_ = mutate(Mutant{
		Name: "neighbour-parent-mounted", Title: "the folder of all jobs is mounted", Of: hostile.Neighbour, Part: reports.PartWall, Source: listed8,
		Walls: func(s *Scene, c *Cell, w *runsc.Walls) {
			if c.Name == "neighbour-walk" {
				w.Mounts = append(w.Mounts, runsc.Mount{Source: filepath.Join(s.cfg.StateDir, "jobs"), Target: sandbox.InputsPath})
			}
		},
	})
)
