package history

import (
	"fmt"
	"strings"
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
	e.Drift = len(r.Drift)
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

// Summary is what came of the run, in one line: "107 held", or "1 fell
// (step-05/processor/relay), 106 held", or why it came to no verdicts.
func (e Entry) Summary() string {
	var words []string
	for _, v := range []hostile.Verdict{hostile.Fell, hostile.Misnamed, hostile.Silent, hostile.Blind, hostile.Broken, hostile.Held} {
		n := e.Trials[v]
		if n == 0 {
			continue
		}
		w := fmt.Sprintf("%d %s", n, v)
		if ids := map[hostile.Verdict][]string{hostile.Fell: e.Fell, hostile.Misnamed: e.Misnamed}[v]; len(ids) > 0 {
			if len(ids) > maxTold {
				ids = append(ids[:maxTold:maxTold], "...")
			}
			w += " (" + strings.Join(ids, ", ") + ")"
		}
		words = append(words, w)
	}
	switch {
	case e.Why != "":
		words = append(words, e.Why)
	case len(words) == 0 && e.Outcome != Running:
		words = append(words, "no verdicts")
	case e.Outcome == Running:
		words = append(words, "it goes on")
	case !e.Complete:
		words = append(words, "a selection, which qualifies no runner")
	}
	if e.Drift > 0 {
		words = append(words, fmt.Sprintf("drift: %d differences", e.Drift))
	}
	return strings.Join(words, ", ")
}

// maxTold is how many trials of one verdict a summary names.
const maxTold = 3
