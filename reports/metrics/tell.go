package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
)

var (
	outcomes = []hostile.Outcome{hostile.Qualified, hostile.Refused, hostile.Unproven, history.Interrupted}
	verdicts = []hostile.Verdict{hostile.Held, hostile.Fell, hostile.Misnamed, hostile.Silent, hostile.Blind, hostile.Broken}
)

// Bounds on what a report can bring along.
const (
	maxObservers = 64  // names
	maxLabel     = 120 // bytes of a version or digest
)

type teller chan<- prometheus.Metric

// gauge tells one number. The labels are made valid, so that it cannot fail.
func (t teller) gauge(d *prometheus.Desc, v float64, labels ...string) {
	t.tell(d, prometheus.GaugeValue, v, labels)
}

func (t teller) tell(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels []string) {
	for i, l := range labels {
		labels[i] = label(l)
	}
	t <- prometheus.MustNewConstMetric(d, kind, v, labels...)
}

func label(s string) string {
	if s = reports.Harmless(s); len(s) > maxLabel {
		s = reports.Harmless(s[:maxLabel]) // a rune cut in two is escaped
	}
	return s
}

// moment tells a time in seconds since the epoch, and nothing for the zero time.
func (t teller) moment(d *prometheus.Desc, at time.Time) {
	if !at.IsZero() {
		t.gauge(d, float64(at.UnixMilli())/1000)
	}
}

// which tells 1 for one of a closed list and 0 for the others.
func which[T ~string](t teller, d *prometheus.Desc, all []T, one T, labels ...string) {
	for _, v := range all {
		n := 0.0
		if v == one {
			n = 1
		}
		t.gauge(d, n, append(slices.Clone(labels), string(v))...)
	}
}

// ledger tells of the runs, and of the last of them that ended.
func (t teller) ledger(s State) {
	for _, reason := range history.Kinds {
		for _, o := range outcomes {
			t.tell(runs, prometheus.CounterValue, float64(s.Runs.Counts[history.Count{Kind: reason, Outcome: o}]), []string{reason, string(o)})
		}
	}
	if s.Runs.Last != "" {
		which(t, outcome, outcomes, s.Runs.Last)
	}
	t.moment(lastRun, s.Runs.Ended)
	t.moment(lastQualified, s.Runs.Good)
}

// report tells of the attempts, routes and observers of one run.
func (t teller) report(r *reports.Report) {
	if r == nil {
		return
	}
	t.gauge(duration, float64(r.DurationMS)/1000)
	t.gauge(identityInfo, 1, r.Runtime.Digest, r.Runtime.Version, r.Runtime.Platform, r.ConfigDigest, r.Image.Base, r.Harness.Digest, r.Host.Kernel, r.Host.BootID)
	count, worst := map[hostile.Verdict]int{}, map[string]hostile.Verdict{}
	for _, trial := range r.Trials {
		v := known(trial.Verdict)
		count[v]++
		if was, ok := worst[trial.Attempt]; !ok || reports.Worse(v, was) {
			worst[trial.Attempt] = v
		}
	}
	for _, v := range verdicts {
		t.gauge(routes, float64(count[v]), string(v))
	}
	for _, a := range hostile.Catalogue() { // so that no report adds a label
		if v, ok := worst[a.Name]; ok {
			which(t, verdict, verdicts, v, a.Name)
		}
	}
	for _, o := range observersOf(r) {
		t.gauge(blind, o.blind, o.name)
	}
}

// known is the verdict, or broken for a word that is none.
func known(v hostile.Verdict) hostile.Verdict {
	if slices.Contains(verdicts, v) {
		return v
	}
	return hostile.Broken
}

// sight is whether an observer saw.
type sight struct {
	name  string
	blind float64
}

// observersOf are those that had to show a control or that looked, by name.
func observersOf(r *reports.Report) []sight {
	all := map[string]float64{}
	note := func(name string, isBlind bool) {
		name = label(name) // two that look alike are one
		if _, ok := all[name]; !ok && len(all) < maxObservers {
			all[name] = 0
		}
		if _, ok := all[name]; ok && isBlind {
			all[name] = 1
		}
	}
	for _, trial := range r.Trials {
		for _, c := range trial.Controls {
			note(c.Observer, !c.Passed)
		}
		for _, o := range trial.Observations {
			// Of a job that was never run there was nothing to see.
			note(o.Observer, o.Lost != "" && trial.Trouble == "")
		}
	}
	var out []sight
	for name, b := range all {
		out = append(out, sight{name, b})
	}
	return out
}
