package history

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// Of is the entry of a run that came to a report. The reason, the folder, the
// expiry and the digest of report.json are the caller's to fill in.
func Of(r *reports.Report) Entry {
	e := Entry{
		Run: r.Run, Started: r.Started, Finished: r.Started.Add(time.Duration(r.DurationMS) * time.Millisecond),
		Outcome: r.Outcome, Complete: r.Complete, Trials: map[hostile.Verdict]int{},
		Digests: Digests{
			Runtime: r.Runtime.Digest, Config: r.ConfigDigest, Image: r.Image.Base, Harness: r.Harness.Digest, Kernel: r.Host.Kernel,
		},
		BootID: r.Host.BootID, Version: r.Harness.Version,
	}
	if r.Interrupted != "" {
		e.Outcome, e.Why = Interrupted, r.Interrupted
	}
	for _, t := range r.Trials {
		e.Trials[t.Verdict]++
		switch t.Verdict {
		case hostile.Fell:
			e.Fell = append(e.Fell, t.ID)
		case hostile.Misnamed:
			e.Misnamed = append(e.Misnamed, t.ID)
		}
	}
	return e
}
