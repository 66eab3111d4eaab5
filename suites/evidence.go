package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
)

// cellEvidence is what one cell left behind. Collecting writes it, judging reads
// it, and nothing in it is a verdict.
type cellEvidence struct {
	place        string
	job          string
	started      time.Time
	lasted       time.Duration
	trouble      string // why the job could not be asked, or its evidence not be had
	claims       hostile.Claims
	ended        *reports.Ended
	observations map[string]observers.Observation
	result       sandbox.Result
}

// trial fills a trial with its share of the cell's evidence.
func (e *cellEvidence) trial(t reports.Trial, controls func(string) []observers.Control, run map[string]observers.Observation) reports.Trial {
	t.Started, t.DurationMS, t.Trouble, t.Ended = e.started.UTC(), e.lasted.Milliseconds(), e.trouble, e.ended
	t.Claims = e.claims.Of(t.Attempt, t.Route)
	t.Said = reports.Said{Foreign: e.claims.Foreign, Noise: e.claims.Noise, Beyond: e.claims.Beyond}
	t.Observations, t.Controls = []observers.Observation{}, []observers.Control{}
	seen := map[string]bool{}
	for _, w := range t.Wants {
		if seen[w.Observer] {
			continue
		}
		seen[w.Observer] = true
		o, ok := e.observations[w.Observer]
		if !ok {
			o, ok = run[w.Observer]
		}
		if ok {
			t.Observations = append(t.Observations, o)
		}
		t.Controls = append(t.Controls, controls(w.Observer)...)
	}
	return t
}
