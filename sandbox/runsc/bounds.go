package runsc

import "time"

// The bounds of time on the runner's own steps. None of them is a timing that a
// sound step comes near: each makes a runtime that hangs, or a process in an
// uninterruptible wait, be told instead of waited for. What was measured stands
// beside each, on two busy processors with the pinned runsc.
//
// How slow a machine is, its operator says by limits.wall, which is how long a
// job may take there: an emulated one, on which a sandbox takes seconds to
// start, has to have it raised in any case. The bounds on what grows with the
// job or the runtime grow with it, so that they never answer before the wall
// clock would.
const (
	// endAtLeast bounds ending the job's processes (0.2 to 110 ms), and again
	// removing what it made (2 to 30 ms; it grows with scratch and with the
	// processes that are ending).
	endAtLeast = 10 * time.Second

	// graceAtLeast is for a start (0.2 s) when a trial lifted the wall
	// clock and the runtime never starts the guest.
	graceAtLeast = 20 * time.Second

	// listAtLeast bounds one call of the runtime's own listing: a start of runsc
	// (15 ms) and one answer of the sandbox, which may be short of processor.
	listAtLeast = 5 * time.Second

	// identifyWithin bounds how long runsc may take to tell its version (15 ms
	// warm). It does not scale: a file may be asked that no configuration names.
	// At the worst it is 90 MB read from a cold disk by an emulated processor.
	identifyWithin = 10 * time.Second

	// pipesWithin is for the pipes of a program that was killed with all that
	// it started: the kernel closed them in that moment, so only somebody who
	// got away from the group can hold one. It does not grow with anything.
	pipesWithin = time.Second

	// lockWithin is for another runner that is just closing the state file. One
	// that runs holds it for its whole life, so that waiting longer would find
	// nothing else on any machine.
	lockWithin = 200 * time.Millisecond

	// minAsk and maxAsk bound how often the job's accounting is read: the
	// processor cap is then overshot by at most minAsk on every processor. In
	// between it scales with their number and with what is left.
	minAsk = 2 * time.Millisecond
	maxAsk = 50 * time.Millisecond
)

func (c Config) endWithin() time.Duration  { return max(endAtLeast, time.Duration(c.Limits.Wall)) }
func (c Config) startGrace() time.Duration { return max(graceAtLeast, 2*time.Duration(c.Limits.Wall)) }
func (c Config) listWithin() time.Duration { return max(listAtLeast, time.Duration(c.Limits.Wall)/2) }

// bounded adds a wall clock where a trial lifted it, so that a runtime that
// hangs does not hold the runner for ever: time for four times the processor
// cap, which is the most that the harness lets a payload take, and for a start.
func (w Walls) bounded(grace time.Duration) Walls {
	if w.Wall == 0 {
		w.Wall = 4*w.CPU + grace
	}
	return w
}
