// Package observers measures, from the host, what a sandboxed job does to the
// host: one file an observer.
//
// An observer decides nothing. It reports numbers ([Reading]: before the
// attempt, at the worst moment, after it) and the offending things it met in
// words ([Observation.Found]); package suites compares them with what was
// written down beforehand. Beside each observation stands a [Control]: a
// harmless effect of the very kind the observer must see, caused by the harness
// in the same run at the same place. What an observer did not see counts for
// nothing unless its control passed.
//
// Every reader takes the roots of /proc, /sys and the cgroup file systems from
// a [Host], so that the parsers are tested over recorded trees without root.
//
// What this package does not prove: an observer sees the effects that the
// host's kernel accounts for. An effect that the host's kernel itself hides is
// outside its reach.
package observers

import "context"

// Host names the kernel's views of one machine. The zero value is unusable;
// call [Local] for the machine the program runs on, or point the fields at a
// recorded tree in tests.
type Host struct {
	Proc   string // root of procfs, usually /proc
	Sys    string // root of sysfs, usually /sys
	Cgroup string // root of the cgroup file systems, usually /sys/fs/cgroup
	Kmsg   string // the kernel's log device, usually /dev/kmsg (kmsg format, see Documentation/ABI/testing/dev-kmsg)

	// Temp is where controls make throwaway files, so that what a crash leaves
	// of them is below a folder that somebody sweeps. Empty is the system's
	// temporary folder.
	Temp string
}

// Local returns the machine's own views.
func Local() Host {
	return Host{Proc: "/proc", Sys: "/sys", Cgroup: "/sys/fs/cgroup", Kmsg: "/dev/kmsg"}
}

// Subject says which job an observer watches. All paths are the host's.
type Subject struct {
	Place     string   // name of the place: unique among the run's jobs
	Cgroup    string   // the job's cgroup below each hierarchy's root, with a leading slash
	Container string   // the runtime's container id
	Scratch   string   // the host folder or mount point behind the job's scratch, empty when there is none
	Inputs    string   // the host folder behind the job's inputs, empty when it has none
	Grants    []string // host paths that the job was granted: root file system, inputs, scratch
	Order     Order    // what the runner told the runtime
}

// Reading is one number over a job's life. Worst is the extreme that matters
// for this value (least free space, most processes), so Before <= Worst or
// Before >= Worst depending on the value; each observer documents its own.
type Reading struct {
	Before int64  `json:"before"`
	Worst  int64  `json:"worst"`
	After  int64  `json:"after"`
	Unit   string `json:"unit"` // bytes, packets, processes, ns, count
}

// Observation is what one observer measured at one place.
type Observation struct {
	Observer string             `json:"observer"`
	Place    string             `json:"place"`
	Values   map[string]Reading `json:"values,omitempty"`
	Found    []string           `json:"found,omitempty"` // offending things in words, at most MaxFound
	Samples  int                `json:"samples"`         // how often the observer looked; 0 means it never did
	Lost     string             `json:"lost,omitempty"`  // why the observer lost its window; empty when it did not
}

// MaxFound bounds Observation.Found; what is beyond is counted in a last line.
const MaxFound = 16

// Find adds one offending thing in words, bounded by MaxFound.
func (o *Observation) Find(what string) {
	switch {
	case len(o.Found) < MaxFound:
		o.Found = append(o.Found, what)
	case len(o.Found) == MaxFound:
		o.Found = append(o.Found, "... and more")
	}
}

// Control is the outcome of one positive control. Passed is true only when the
// observer saw exactly the effect that the harness caused.
type Control struct {
	Observer string `json:"observer"`
	Place    string `json:"place"`
	Effect   string `json:"effect"` // what the harness did, in words
	Want     string `json:"want"`   // what the observer had to see
	Seen     string `json:"seen"`   // what it saw
	Passed   bool   `json:"passed"`
	Reason   string `json:"reason,omitempty"` // why it did not pass, with the remedy where one is known
}

// Observer is one pair of eyes on the host, made for one run.
type Observer interface {
	// Name is the observer's word in reports, metrics and docs.
	Name() string
	// Control causes the harmless effect and reports whether it was seen. It
	// cleans up after itself and never blocks beyond ctx.
	Control(ctx context.Context) Control
	// Watch arms the observer for one job before the job starts. An error
	// means that it cannot see: the caller records it as lost.
	Watch(ctx context.Context, s Subject) (Watch, error)
}

// Watch is an armed observer. Its methods are called in this order, from one
// goroutine: Sample any number of times while the job lives, Ended once when
// the job's processes are gone and its cgroup still stands, Stored once when
// the result is stored and the teardown has finished.
type Watch interface {
	// Sample looks once. It is called every few milliseconds, so it is cheap.
	Sample()
	// Ended takes the final accounting of the job's cgroup.
	Ended()
	// Stored looks for what outlived the job, releases what the watch holds
	// and returns the observation. It is always called, also after errors.
	Stored() Observation
}
