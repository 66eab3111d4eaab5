package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/syscalls"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// The census is counted inside, since only the guest's kernel has the filter.
// What the payload found is compared here with the filter of the profile, as the
// observer "census": "beyond" (let through and not on the allow list), "missing"
// (on the list and refused, or to be answered as absent and not so), "through",
// "absent", "refused", "undecided", and "unexplained" (undecided and not one of
// those to which the kernel itself says EPERM).
// It does not make the claim true: it names each number that a change of the
// filter moved.
type census struct {
	allow     []int // let through
	absent    []int // answered as by a kernel that lacks them
	undecided []int // where EPERM tells nothing
	err       error
}

func newCensus(f *runsc.Filter) census {
	c := census{}
	c.allow = c.numbers(f.Allow)
	c.absent = c.numbers(f.Absent())
	for _, n := range kernelSaysEPERM {
		if nr, ok := syscalls.Number(n); ok { // the others are another machine's
			c.undecided = append(c.undecided, nr)
		}
	}
	return c
}

func (c *census) numbers(names []string) []int {
	var out []int
	for _, n := range names {
		nr, ok := syscalls.Number(n)
		if !ok {
			c.err = fmt.Errorf("entry point %q has no number on this machine", n)
			continue
		}
		out = append(out, nr)
	}
	slices.Sort(out)
	return out
}

// Name is "census".
func (census) Name() string { return "census" }

// Watch is empty: nothing of the host shows the guest's filter.
func (census) Watch(context.Context, observers.Subject) (observers.Watch, error) {
	return nil, nil
}

// Control compares a made-up count in which one number is let through beyond
// the list, one is refused, and one undecided without a reason.
func (c census) Control(context.Context) observers.Control {
	out := observers.Control{
		Observer: "census", Effect: "a count with one number beyond the list, one missing and one unexplained is compared",
		Want: "1 beyond, 1 missing, 1 unexplained",
	}
	if c.err != nil {
		out.Reason = c.err.Error()
		return out
	}
	made := census{allow: []int{0, 1, 5}, absent: []int{7}, undecided: []int{11}}
	o := made.compare("control", "all", "allowed 0-1,9; absent 7; refused 3; by EPERM 3; undecided 11-12")
	out.Seen = fmt.Sprintf("%d beyond, %d missing, %d unexplained", o.Values["beyond"].After, o.Values["missing"].After, o.Values["unexplained"].After)
	if out.Passed = out.Seen == out.Want && o.Lost == ""; !out.Passed {
		out.Reason = "the comparison is wrong " + o.Lost
	}
	return out
}

// seen compares the last census claim of a cell, which makes one census.
func (c census) seen(place string, claims hostile.Claims) observers.Observation {
	for _, claim := range slices.Backward(claims.Claims) {
		if claim.Attempt == hostile.Census.Name && (claim.Event == hostile.Stopped || claim.Event == hostile.Happened) {
			return c.compare(place, claim.Route, claim.Note)
		}
	}
	return observers.Observation{Observer: "census", Place: place, Lost: "no count was claimed"}
}

// compare reads "allowed 0-1,3; absent 435; refused N; by ...; undecided 7". The
// route by-signal asked only some, and says which first: "asked 142,155; ". What
// of its numbers was not asked is undecided.
func (c census) compare(place, route, note string) observers.Observation {
	o := observers.Observation{Observer: "census", Place: place, Samples: 1, Values: map[string]observers.Reading{}}
	if c.err != nil {
		o.Lost = c.err.Error()
		return o
	}
	parts := map[string]string{}
	for _, p := range strings.Split(note, "; ") {
		if k, v, ok := strings.Cut(p, " "); ok {
			parts[k] = v
		}
	}
	through, err := syscalls.Ranges(parts["allowed"])
	absent, err2 := syscalls.Ranges(parts["absent"])
	undecided, err3 := syscalls.Ranges(parts["undecided"])
	refused, err4 := strconv.Atoi(parts["refused"])
	if route == bySignal {
		asked, err5 := syscalls.Ranges(parts["asked"])
		err = errors.Join(err, err5)
		elsewhere := func(nr int) bool { return !slices.Contains(asked, nr) }
		c.allow, c.absent = slices.DeleteFunc(slices.Clone(c.allow), elsewhere), slices.DeleteFunc(slices.Clone(c.absent), elsewhere)
		undecided = append(undecided, slices.DeleteFunc(slices.Clone(c.undecided), in(asked))...)
	}
	if errors.Join(err, err2, err3, err4) != nil {
		o.Lost = "the claim's count cannot be read"
		return o
	}
	count := func(name string, n int) {
		o.Values[name] = observers.Reading{Worst: int64(n), After: int64(n), Unit: "count"}
	}
	find := func(what string, numbers []int, listed func(int) bool) (n int) {
		for _, nr := range numbers {
			if !listed(nr) {
				n++
				o.Find(fmt.Sprintf("%s: %d %s", what, nr, syscalls.Name(nr)))
			}
		}
		return n
	}
	// A call that is let through may say itself that it is absent.
	count("beyond", find("let through beyond the allow list", through, in(c.allow))+
		find("absent, and neither let through nor to be so", absent, in(c.allow, c.absent)))
	count("missing", find("on the allow list and refused", c.allow, in(through, absent, undecided))+
		find("to be absent, and not so", c.absent, in(absent)))
	count("unexplained", find("undecided without a reason", undecided, in(c.undecided)))
	count("through", len(through))
	count("absent", len(absent))
	count("refused", refused)
	count("undecided", len(undecided))
	return o
}

func in(lists ...[]int) func(int) bool {
	return func(nr int) bool {
		return slices.ContainsFunc(lists, func(l []int) bool { return slices.Contains(l, nr) })
	}
}

func censusWants() []reports.Want {
	beyond := none("census", "beyond", "count", "no entry point let through beyond the allow list")
	missing := none("census", "missing", "count", "no entry point of the allow list refused, and clone3 absent")
	missing.Breach = hostile.Misnamed
	unexplained := none("census", "unexplained", "count", "none undecided but those to which the guest kernel itself says EPERM")
	unexplained.Breach = hostile.Misnamed
	return []reports.Want{beyond, missing, unexplained}
}

// censusBySignalWants has no undecided ones at all.
func censusBySignalWants() []reports.Want {
	undecided := none("census", "undecided", "count", "none undecided")
	undecided.Breach = hostile.Misnamed
	return append(censusWants()[:2], undecided)
}
