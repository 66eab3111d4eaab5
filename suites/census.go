package suites

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/syscalls"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
)

// The census is counted inside, since only the guest's kernel has the filter.
// What the payload found is compared here with the allow list of the profile,
// as the observer "census": "beyond" (let through and not on the list),
// "missing" (on the list and refused), "through", "refused" and "undecided".
// It does not make the claim true: it names each number that a change of the
// filter moved.
type census struct {
	allow []int
	err   error
}

func newCensus(names []string) census {
	c := census{}
	for _, n := range names {
		nr, ok := syscalls.Number(n)
		if !ok {
			c.err = fmt.Errorf("entry point %q has no number on this machine", n)
			continue
		}
		c.allow = append(c.allow, nr)
	}
	slices.Sort(c.allow)
	return c
}

// Name is "census".
func (census) Name() string { return "census" }

// Watch is empty: nothing of the host shows the guest's filter.
func (census) Watch(context.Context, observers.Subject) (observers.Watch, error) {
	return nil, nil
}

// Control compares a made-up count in which one number is let through beyond
// the list and one is refused.
func (c census) Control(context.Context) observers.Control {
	out := observers.Control{Observer: "census", Effect: "a count with one number beyond the list and one missing is compared", Want: "1 beyond, 1 missing"}
	if c.err != nil {
		out.Reason = c.err.Error()
		return out
	}
	made := census{allow: []int{0, 1, 5}}
	o := made.compare("control", "allowed 0-1,9; refused 3; by EPERM 3; undecided none")
	out.Seen = fmt.Sprintf("%d beyond, %d missing", o.Values["beyond"].After, o.Values["missing"].After)
	if out.Passed = out.Seen == out.Want && o.Lost == ""; !out.Passed {
		out.Reason = "the comparison is wrong " + o.Lost
	}
	return out
}

// seen compares the last census claim of a cell.
func (c census) seen(place string, claims hostile.Claims) observers.Observation {
	for _, claim := range slices.Backward(claims.Of(hostile.Census.Name, "all")) {
		if claim.Event == hostile.Stopped || claim.Event == hostile.Happened {
			return c.compare(place, claim.Note)
		}
	}
	return observers.Observation{Observer: "census", Place: place, Lost: "no count was claimed"}
}

// compare reads "allowed 0-1,3; refused N; by ...; undecided 7".
func (c census) compare(place, note string) observers.Observation {
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
	undecided, err2 := syscalls.Ranges(parts["undecided"])
	refused, err3 := strconv.Atoi(parts["refused"])
	if err != nil || err2 != nil || err3 != nil {
		o.Lost = "the claim's count cannot be read"
		return o
	}
	var beyond, missing int64
	for _, n := range through {
		if !slices.Contains(c.allow, n) {
			beyond++
			o.Find(fmt.Sprintf("let through beyond the allow list: %d %s", n, syscalls.Name(n)))
		}
	}
	for _, n := range c.allow {
		if !slices.Contains(through, n) && !slices.Contains(undecided, n) {
			missing++
			o.Find(fmt.Sprintf("on the allow list and refused: %d %s", n, syscalls.Name(n)))
		}
	}
	for k, v := range map[string]int64{
		"beyond": beyond, "missing": missing, "through": int64(len(through)), "refused": int64(refused), "undecided": int64(len(undecided)),
	} {
		o.Values[k] = observers.Reading{Worst: v, After: v, Unit: "count"}
	}
	return o
}

func censusWants() []reports.Want {
	beyond := none("census", "beyond", "count", "no entry point let through beyond the allow list")
	missing := none("census", "missing", "count", "no entry point of the allow list refused")
	missing.Breach = hostile.Misnamed
	return []reports.Want{beyond, missing}
}
