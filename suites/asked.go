package suites

import (
	"fmt"
	"slices"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

// AskedOtherwise says in what a recorded trial was asked otherwise than this
// harness asks it under that grant; empty when in nothing. Who judges again what
// is recorded takes what was expected and wanted from the record too, and a
// record that wants nothing is always met.
//
// Two numbers of the runner configuration are not part of a grant, and are
// taken as recorded: the answer of the entry-point filter and the host's own cap
// of tasks.
func (t *Trial) AskedOtherwise(r reports.Trial, grant sandbox.Limits) string {
	cfg := runsc.DefaultConfig()
	cfg.Limits.CPU = runsc.Duration(grant.CPUMillis * 1e6)
	cfg.Limits.Memory, cfg.Limits.Processes = runsc.Size(grant.MemoryBytes), grant.Processes
	cfg.Limits.Scratch, cfg.Limits.Wall = runsc.Size(grant.ScratchBytes), runsc.Duration(grant.WallTime)
	cfg.Limits.Output, cfg.Limits.Artifacts = runsc.Size(grant.OutputBytes), runsc.Size(grant.ArtifactBytes)
	if r.Expected.Kind == hostile.SIGSYS {
		cfg.EntryPoints.Action = "TRAP"
	}
	if n := len(t.Wants); len(r.Wants) == n {
		if i := slices.IndexFunc(t.Wants, func(w want) bool { return w.Bound == grantHostTasks }); i >= 0 && r.Wants[i].Bound > 0 {
			cfg.Limits.HostTasks = r.Wants[i].Bound
		}
	}
	asked := t.Under(cfg)
	switch {
	case r.Expected != asked.Expected:
		return fmt.Sprintf("expected was %s, and is %s", r.Expected, asked.Expected)
	case r.By != asked.By:
		return fmt.Sprintf("it was judged by %s, and is by %s", r.By, asked.By)
	case !slices.Equal(r.Lifts, asked.Lifts()):
		return fmt.Sprintf("lifted was %q, and is %q", r.Lifts, asked.Lifts())
	}
	for _, w := range asked.Wants {
		if !slices.Contains(r.Wants, w) {
			return fmt.Sprintf("it does not want %s (%s %s)", w.Words, w.Observer, w.Value)
		}
	}
	if len(r.Wants) != len(asked.Wants) {
		return fmt.Sprintf("it wants %d things of the host, and not %d", len(r.Wants), len(asked.Wants))
	}
	return ""
}
