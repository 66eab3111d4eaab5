package reports

import (
	"testing"

	"tenwalls.dev/harness/observers"
)

func TestWantMet(t *testing.T) {
	r := observers.Reading{Before: 10, Worst: 50, After: 13}
	for _, c := range []struct {
		moment Moment
		rule   Rule
		bound  int64
		met    bool
	}{
		{Worst, AtMost, 50, true}, {Worst, AtMost, 49, false},
		{After, AtLeast, 13, true}, {After, AtLeast, 14, false},
		{Growth, Exactly, 3, true}, {Growth, Exactly, 13, false},
		{Growth, "about", 3, false}, {"best", AtMost, 50, false}, {"", AtMost, 50, false}, {Growth, "", 3, false},
	} {
		w := Want{Moment: c.moment, Rule: c.rule, Bound: c.bound}
		if got := w.Met(r); got != c.met {
			t.Errorf("%s %s %d: met %v", c.moment, c.rule, c.bound, got)
		}
	}
}
