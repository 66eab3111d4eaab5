package suites

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/syscalls"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
)

func TestCensusCompare(t *testing.T) {
	c := census{allow: []int{0, 1, 5}}
	for note, want := range map[string]map[string]int64{
		"allowed 0-1,5; refused 500; by EPERM 500; undecided none": {"beyond": 0, "missing": 0, "through": 3, "refused": 500, "undecided": 0},
		"allowed 0-1; refused 501; by EPERM 501; undecided none":   {"beyond": 0, "missing": 1, "through": 2, "refused": 501, "undecided": 0},
		"allowed 0-9; refused 3; by SIGSYS 3; undecided none":      {"beyond": 7, "missing": 0, "through": 10, "refused": 3, "undecided": 0},
		"allowed none; refused 512; by EPERM 512; undecided none":  {"beyond": 0, "missing": 3, "through": 0, "refused": 512, "undecided": 0},
		"allowed 0-1; refused 3; by EPERM 3; undecided 5,7":        {"beyond": 0, "missing": 0, "through": 2, "refused": 3, "undecided": 2},
	} {
		o := c.compare("here", note)
		got := map[string]int64{}
		for k, r := range o.Values {
			got[k] = r.After
			if r.Worst != r.After {
				t.Errorf("%q: %s %+v", note, k, r)
			}
		}
		if !maps.Equal(got, want) || o.Lost != "" || o.Samples != 1 || o.Observer != "census" || o.Place != "here" {
			t.Errorf("%q: %+v", note, o)
		}
		if n := int(want["beyond"] + want["missing"]); len(o.Found) != min(n, observers.MaxFound+1) {
			t.Errorf("%q: %d differences, found %q", note, n, o.Found)
		}
	}
	for _, note := range []string{
		"", "allowed 0-1,5", "allowed 0-1,5; refused 3", "allowed 0-1,5; undecided none", "allowed; refused 3; undecided none",
		"allowed 0-1,5; refused many; undecided none", "allowed 0-1,5; refused 3; undecided some", "refused 3; undecided none",
		"allowed 0-99999; refused 3; undecided none",
	} {
		if o := c.compare("here", note); o.Lost == "" || len(o.Values) != 0 {
			t.Errorf("%q was read: %+v", note, o)
		}
	}
}

func TestCensusSeesTheLastCount(t *testing.T) {
	c := census{allow: []int{0, 1, 5}}
	claim := func(e hostile.Event, route, note string) hostile.Claim {
		return hostile.Claim{Attempt: "census", Route: route, Event: e, Note: note}
	}
	good, bad := "allowed 0-1,5; refused 3; undecided none", "allowed 0-2,5; refused 2; undecided none"
	o := c.seen("here", hostile.Claims{Claims: []hostile.Claim{
		claim(hostile.Stopped, "all", bad), claim(hostile.Stopped, "all", good), claim(hostile.Reached, "all", bad), claim(hostile.Stopped, "other", bad),
	}})
	if o.Lost != "" || o.Values["beyond"].After != 0 {
		t.Errorf("%+v", o)
	}
	if o := c.seen("here", hostile.Claims{Claims: []hostile.Claim{claim(hostile.Happened, "all", bad)}}); o.Values["beyond"].After != 1 {
		t.Errorf("a count that happened is a count: %+v", o)
	}
	if o := c.seen("here", hostile.Claims{Claims: []hostile.Claim{claim(hostile.Reached, "all", good)}}); o.Lost == "" || o.Observer != "census" {
		t.Errorf("nothing was counted: %+v", o)
	}
}

func TestCensusOfTheProfile(t *testing.T) {
	c := newCensus(runsc.DefaultConfig().Walls().Filter.Allow)
	if control := c.Control(t.Context()); !control.Passed {
		t.Errorf("%+v", control)
	}
	if len(c.allow) < 50 || !slices.IsSorted(c.allow) {
		t.Errorf("%d entry points: %v", len(c.allow), c.allow)
	}
	c = newCensus([]string{"read", "no_such_call"})
	if control := c.Control(t.Context()); control.Passed || !strings.Contains(control.Reason, "no_such_call") {
		t.Errorf("%+v", control)
	}
	if o := c.compare("here", "allowed 0; refused 3; undecided none"); o.Lost == "" {
		t.Errorf("compared with a list that is not known: %+v", o)
	}
}

func FuzzCensusCompare(f *testing.F) {
	for _, s := range []string{"allowed 0-1,5; refused 3; by EPERM 3; undecided none", "allowed 0-4096; refused 0; undecided 0-4096", "", "; ; ", "allowed 0-1-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, note string) {
		c := census{allow: []int{0, 1, 5}}
		o := c.compare("here", note)
		if len(o.Found) > observers.MaxFound+1 {
			t.Errorf("%d found", len(o.Found))
		}
		if o.Lost != "" {
			if len(o.Values) != 0 {
				t.Errorf("values of a claim that could not be read: %+v", o)
			}
			return
		}
		v := func(k string) int64 { return o.Values[k].After }
		if len(o.Values) != 5 || v("through") > 2*syscalls.MaxNumber+2 || v("beyond") > v("through") || v("missing") > int64(len(c.allow)) {
			t.Errorf("%+v", o)
		}
		if v("through")-v("beyond") < int64(len(c.allow))-v("missing")-v("undecided") {
			t.Errorf("entry points of the list are nowhere: %+v", o)
		}
	})
}
