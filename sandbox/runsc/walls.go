package runsc

import (
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"tenwalls.dev/harness/sandbox"
)

// Walls are the walls of one job as the runner puts them up: the profile
// runsc-deny-all-v1 with the configuration's numbers. A trial may lower one of
// them in a copy (a lift); the operator's file is never changed.
type Walls struct {
	UID, GID      uint32
	Groups        []uint32
	Capabilities  []string // of all five sets
	NewPrivileges bool     // true: no_new_privs is not set
	SetUID        bool     // the runtime heeds set-user-id bits; it ignores them by itself

	RootWritable   bool // the image's root file system is mounted rw
	RootOverlay    string
	InputsWritable bool
	TmpOpen        bool // /tmp is left to the runtime, which makes it writable and unsized
	ScratchFolder  bool // scratch is a plain folder of the host instead of a sized tmpfs
	Scratch        int64

	Filter *Filter // nil: none is loaded

	Processes int64         // RLIMIT_NPROC of the guest kernel; 0: none
	HostTasks int64         // pids.max of the job's cgroup; 0: none
	CPU       time.Duration // processor time over the whole job; 0: none
	CPULimit  time.Duration // RLIMIT_CPU of each process, in whole seconds; 0: none
	Memory    int64         // of the job's memory cgroup; 0: none
	Swap      int64         // beyond memory; -1: not limited
	Wall      time.Duration // 0: none
	Output    int64         // stdout and stderr together; 0: none

	Namespaces []string // OCI names of the job's own namespaces
	Network    string   // runsc's --network
	NetNS      string   // path of a network namespace for the sandbox; empty: a new, empty one
	// Shared are paths of namespaces that the job joins instead of having its
	// own, by OCI name.
	Shared map[string]string
	Mounts []Mount // beyond the profile's own

	// What the runtime is given beyond what [Traces] say that it is ordered, as a
	// program in its place could do it. No configuration does.
	UnsaidFlags []string
	UnsaidSpec  func(*specs.Spec)
}

// Mount is one more bind mount.
type Mount struct {
	Source, Target string // host path, guest path
	Writable       bool
}

// namespaces are the five that the profile isolates.
var namespaces = []string{"pid", "mount", "network", "ipc", "uts"}

// nobody is the identity that owns nothing.
const nobody = 65534

// limitFactor is how far behind the cap over the job the guest kernel's limit
// of one process stands. That kernel counts a task's time by ticks while it is
// ready to run, so on a busy host it counts more than the processors gave: with
// both at the same number the wall behind would answer first, and under load
// would end jobs that have time left.
const limitFactor = 4

// Walls returns the profile's walls with the configuration's numbers.
func (c Config) Walls() Walls {
	l := c.Limits
	return Walls{
		UID: nobody, GID: nobody,
		Scratch:    int64(l.Scratch),
		Filter:     DenyAllFilter(c.EntryPoints.Action).With(c.EntryPoints.Allow...),
		Processes:  l.Processes,
		HostTasks:  l.HostTasks,
		CPU:        time.Duration(l.CPU),
		CPULimit:   limitFactor * time.Duration(l.CPU),
		Memory:     int64(l.Memory),
		Swap:       int64(l.Swap),
		Wall:       time.Duration(l.Wall),
		Output:     int64(l.Output),
		Namespaces: namespaces,
		Network:    c.Network,
	}
}

// within lowers the caps to what the job asked for, which the capabilities
// grant.
func (w Walls) within(l sandbox.Limits) Walls {
	w.CPU = min(w.CPU, time.Duration(l.CPUMillis)*time.Millisecond)
	w.CPULimit = min(w.CPULimit, limitFactor*time.Duration(l.CPUMillis)*time.Millisecond)
	w.Memory = min(w.Memory, l.MemoryBytes)
	w.Processes = min(w.Processes, l.Processes)
	w.Scratch = min(w.Scratch, l.ScratchBytes)
	w.Wall = min(w.Wall, l.WallTime)
	w.Output = min(w.Output, l.OutputBytes)
	return w
}
