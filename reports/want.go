package reports

import (
	"slices"

	"tenwalls.dev/harness/observers"
)

// Measured returns the number of the reading that the want is about.
func (w Want) Measured(r observers.Reading) int64 {
	switch w.Moment {
	case After:
		return r.After
	case Growth:
		return r.After - r.Before
	default:
		return r.Worst
	}
}

// Met reports whether the reading is as wanted. An unknown rule or moment is
// never met, nor is a negative bound, which stands for a number that was not
// filled in.
func (w Want) Met(r observers.Reading) bool {
	if w.Bound < 0 || !slices.Contains([]Moment{Worst, After, Growth}, w.Moment) {
		return false
	}
	n := w.Measured(r)
	switch w.Rule {
	case AtMost:
		return n <= w.Bound
	case AtLeast:
		return n >= w.Bound
	case Exactly:
		return n == w.Bound
	default:
		return false
	}
}
