package runsc

import (
	"slices"

	"tenwalls.dev/harness/sandbox"
)

// Stage is a moment of a job's life at which a [Probe] is told.
type Stage string

// Stages, in their order. Each is told once; Started is left out when the
// runtime could not be called at all.
const (
	StagePlaced  Stage = "placed"  // cgroup and folders stand, nothing runs in them
	StageStarted Stage = "started" // the runtime runs
	StageEnded   Stage = "ended"   // every process of the job is gone, cgroup and scratch still stand
	StageStored  Stage = "stored"  // the teardown is finished and the result is stored
)

// Traces is what a job leaves on the host while it lives. Paths are the host's.
type Traces struct {
	Job       string   // id
	Container string   // the runtime's id of the container
	Cgroup    string   // below each hierarchy's root
	Dir       string   // folder of the job
	Scratch   string   // mount point
	Inputs    string   // folder that is mounted for the inputs, from Placed on; empty when the job has none
	Root      string   // the runtime's state folder
	Image     string   // root file system
	Grants    []string // every host path that the job was granted
	PID       int      // of the runtime's command, from Started on

	// What the runtime is ordered, from Placed on.
	Flags  []string // before its command
	Bundle string   // folder of the bundle
	Config []byte   // the bundle's config.json
}

// Probe is how the harness looks at one job while the runner runs it. Its
// changes are made to this job's walls only; the configuration stays as it is.
// A job submitted with the zero Probe runs as any other.
type Probe struct {
	// Change lowers walls in the job's own copy (a lift).
	Change func(*Walls)
	// LaunchNS is the path of a network namespace in which the runtime is
	// called, so that a sandbox without its network wall reaches only what
	// stands there. Empty: the runner's own.
	LaunchNS string
	// Keep skips steps of the teardown, to show that their absence is noticed.
	// Whoever asks for it removes what is left.
	Keep []Kept
	// At is called at each stage, from the job's goroutine, which waits for it.
	At func(Stage, Traces)
}

// Kept is a step of the teardown that a probe skips. The list is closed.
type Kept string

// Steps of the teardown.
const (
	KeepProcesses Kept = "processes" // what runs is not ended
	KeepScratch   Kept = "scratch"   // what is mounted stays so, with the job's folder
	KeepCgroup    Kept = "cgroup"
	KeepFolder    Kept = "folder" // of the job, with the runtime's state
)

func (p Probe) keeps(k Kept) bool { return slices.Contains(p.Keep, k) }

func (p Probe) walls(w Walls, l sandbox.Limits) Walls {
	w = w.within(l)
	if p.Change != nil {
		p.Change(&w)
	}
	return w
}

func (p Probe) at(s Stage, t Traces) {
	if p.At != nil {
		p.At(s, t)
	}
}
