package suites

import (
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// Specs puts one Ginkgo spec an assertion into the tree: the refusal of each
// trial, and each thing that the host has to have observed. They assert over
// evidence that was collected once; judged returns a trial's by its id. Call it
// while the tree is built, once a process.
func Specs(judged func(id string) (reports.Trial, bool)) {
	for _, a := range hostile.Catalogue() {
		ginkgo.Describe(a.Label()+": "+a.Title, func() {
			for _, t := range Trials() {
				if t.Attempt == a {
					specsOf(t, judged)
				}
			}
		})
	}
}

func specsOf(t *Trial, judged func(string) (reports.Trial, bool)) {
	get := func() reports.Trial {
		rt, ok := judged(t.ID())
		gomega.Expect(ok).To(gomega.BeTrue(), "%s: nothing was collected", t.ID())
		return rt
	}
	labels := t.Labels()
	ginkgo.It(fmt.Sprintf("%s: %s", t.Route, t.Expected), ginkgo.Label(labels...), func() {
		rt := get()
		gomega.Expect(rt.Verdict).To(gomega.Equal(hostile.Held), "%s: %s", rt.ID, rt.Reason)
	})
	for _, w := range t.Wants {
		ginkgo.It(fmt.Sprintf("%s: host: %s", t.Route, w.Words), ginkgo.Label(append(labels, "half:host")...), func() {
			rt := get()
			filled := wantOf(rt, w)
			gomega.Expect(uncontrolled(&rt, w.Observer)).To(gomega.BeEmpty())
			r, ok := reading(&rt, filled)
			gomega.Expect(ok).To(gomega.BeTrue(), "%s: observer %s did not measure %s", rt.ID, w.Observer, w.Value)
			gomega.Expect(filled.Met(r)).To(gomega.BeTrue(), "%s: wanted %s: %s %s %s %d %s, seen %d%s",
				rt.ID, w.Words, w.Observer, w.Value, filled.Rule, filled.Bound, filled.Unit, filled.Measured(r), found(&rt, w.Observer))
		})
	}
}

// wantOf is the want as the run filled it in from the configuration.
func wantOf(t reports.Trial, w reports.Want) reports.Want {
	for _, f := range t.Wants {
		if f.Observer == w.Observer && f.Value == w.Value && f.Moment == w.Moment && f.Rule == w.Rule && f.Words == w.Words {
			return f
		}
	}
	return w // not filled in: its bound cannot be met
}
