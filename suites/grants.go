package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Bounds that stand for a number of the runner configuration under test. They
// are negative, so that a bound that was not filled in can never be met.
const (
	grantScratch = -1 - iota
	grantHostTasks
	grantProcesses
	grantCPU
	grantCPUTolerated
	grantCPUTwice
	grantMemory
	grantMemoryTolerated
	grantSwap
	grantWall
	grantWallTolerated
	grantOutput
)

// Tolerances of the host's accounting, stated in every report through the
// bounds they make.
const (
	// cpuTolerance is how far the host's accounting may pass the processor
	// cap: the runner reads the accounts every 2 ms near the cap, and ending a
	// job takes the kernel as long as every processor is in one system call.
	cpuTolerance = 250 * time.Millisecond
	// memoryTolerance is how far the kernel itself may pass a memory limit: it
	// charges a few pages by force where it cannot fail (__GFP_NOFAIL), and
	// 4096 bytes beyond were seen.
	memoryTolerance = 1 << 20
	// wallTolerance is the time between the cap and the end of the last
	// process, on a machine whose processors are all busy.
	wallTolerance = 2 * time.Second
)

// granted fills the numbers in: the configuration's, or what the cell's job asks
// for where that is less.
func granted(wants []reports.Want, cfg runsc.Config, c *Cell) []reports.Want {
	l := cfg.Limits.Limits()
	if c.Limits != nil {
		c.Limits(&l)
	}
	cpu := l.CPUMillis * int64(time.Millisecond)
	bounds := map[int64]int64{
		grantScratch: l.ScratchBytes, grantHostTasks: cfg.Limits.HostTasks, grantProcesses: l.Processes,
		grantCPU: cpu, grantCPUTolerated: cpu + int64(cpuTolerance), grantCPUTwice: 2 * cpu,
		grantMemory: l.MemoryBytes, grantSwap: int64(cfg.Limits.Swap), grantMemoryTolerated: l.MemoryBytes + memoryTolerance, grantWall: int64(l.WallTime), grantWallTolerated: int64(l.WallTime + wallTolerance),
		grantOutput: l.OutputBytes,
	}
	out := make([]reports.Want, len(wants))
	for i, w := range wants {
		if b, ok := bounds[w.Bound]; ok {
			w.Bound = b
		}
		out[i] = w
	}
	return out
}

// filtered says the expectation in the words of the configured action: EPERM
// by ERRNO, SIGSYS by TRAP and KILL. The wrong one is misnamed.
func filtered(r hostile.Refusal, cfg runsc.Config) hostile.Refusal {
	if r.Place == hostile.EntryPointFilter && r.Kind == hostile.EPERM && cfg.EntryPoints.Action != "ERRNO" {
		r.Kind = hostile.SIGSYS
	}
	return r
}

// refusals by the runner's terminal reason.
var endings = map[runsc.Reason]hostile.Refusal{
	runsc.ReasonCPU:       {Kind: hostile.CPUCap, Place: hostile.ProcessorCap},
	runsc.ReasonWall:      {Kind: hostile.WallCap, Place: hostile.WallClock},
	runsc.ReasonMemory:    {Kind: hostile.MemoryCap, Place: hostile.JobMemoryCgroup},
	runsc.ReasonOutput:    {Kind: hostile.OutputCap, Place: hostile.OutputBound},
	runsc.ReasonArtifact:  {Kind: hostile.ArtifactCap, Place: hostile.ArtifactBound},
	runsc.ReasonCancelled: {Kind: hostile.Ended, Place: hostile.ProcessGroup},
}
