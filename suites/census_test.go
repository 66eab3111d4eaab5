package suites

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/syscalls"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
)

func TestCensusCompare(t *testing.T) {
	c := census{allow: []int{0, 1, 5}, absent: []int{7}, undecided: []int{11}}
	for note, want := range map[string][7]int64{ // beyond, missing, through, absent, refused, undecided, unexplained
		"allowed 0-1,5; absent 7; refused 500; by EPERM 500; undecided none":   {0, 0, 3, 1, 500, 0, 0},
		"allowed 0-1; absent 7; refused 501; by EPERM 501; undecided none":     {0, 1, 2, 1, 501, 0, 0},
		"allowed 0-9; absent none; refused 3; by SIGSYS 3; undecided none":     {7, 1, 10, 0, 3, 0, 0},
		"allowed none; absent 7; refused 512; by EPERM 512; undecided none":    {0, 3, 0, 1, 512, 0, 0},
		"allowed 0-1; absent 7; refused 3; by EPERM 3; undecided 5,11":         {0, 0, 2, 1, 3, 2, 1},
		"allowed 0-1,5; absent none; refused 500; by EPERM 500; undecided 11":  {0, 1, 3, 0, 500, 1, 0},
		"allowed 0-1; absent 5,7; refused 500; by EPERM 500; undecided none":   {0, 0, 2, 2, 500, 0, 0},
		"allowed 0-1,5; absent 7-8; refused 500; by EPERM 500; undecided none": {1, 0, 3, 2, 500, 0, 0},
		"allowed 0-1,5; absent 7; refused 3; by EPERM 3; undecided 11-13":      {0, 0, 3, 1, 3, 3, 2},
	} {
		o := c.compare("here", "all", note)
		var got [7]int64
		for i, k := range []string{"beyond", "missing", "through", "absent", "refused", "undecided", "unexplained"} {
			r := o.Values[k]
			got[i] = r.After
			if r.Worst != r.After {
				t.Errorf("%q: %s %+v", note, k, r)
			}
		}
		if got != want || len(o.Values) != len(want) || o.Lost != "" || o.Samples != 1 || o.Observer != "census" || o.Place != "here" {
			t.Errorf("%q: %+v", note, o)
		}
		if n := int(want[0] + want[1] + want[6]); len(o.Found) != min(n, observers.MaxFound+1) {
			t.Errorf("%q: %d differences, found %q", note, n, o.Found)
		}
	}
	for _, note := range []string{
		"", "allowed 0-1,5", "allowed 0-1,5; absent 7; refused 3", "allowed 0-1,5; absent 7; undecided none", "allowed; absent 7; refused 3; undecided none",
		"allowed 0-1,5; absent 7; refused many; undecided none", "allowed 0-1,5; absent 7; refused 3; undecided some", "absent 7; refused 3; undecided none",
		"allowed 0-99999; absent 7; refused 3; undecided none", "allowed 0-1,5; refused 3; undecided none", "allowed 0-1,5; absent all; refused 3; undecided none",
	} {
		if o := c.compare("here", "all", note); o.Lost == "" || len(o.Values) != 0 {
			t.Errorf("%q was read: %+v", note, o)
		}
	}
}

// Of a count by signals only what was asked is compared, and what had to be
// asked and was not is undecided.
func TestCensusBySignal(t *testing.T) {
	c := census{allow: []int{0, 1, 5}, absent: []int{7}, undecided: []int{11, 12}}
	for note, want := range map[string][3]int64{ // beyond, missing, undecided
		"asked 11-12; allowed none; absent none; refused 2; undecided none":     {0, 0, 0},
		"asked 11-12; allowed 11; absent none; refused 1; undecided none":       {1, 0, 0},
		"asked 11; allowed none; absent none; refused 1; undecided none":        {0, 0, 1},
		"asked none; allowed none; absent none; refused 1; undecided none":      {0, 0, 2},
		"asked 5,11-12; allowed none; absent none; refused 3; undecided none":   {0, 1, 0},
		"asked 5,7,11-12; allowed 5; absent none; refused 3; undecided none":    {0, 1, 0},
		"asked 5,7,11-12; allowed 5,11; absent 7,12; refused 0; undecided none": {2, 0, 0},
	} {
		o := c.compare("here", bySignal, note)
		if got := [3]int64{o.Values["beyond"].After, o.Values["missing"].After, o.Values["undecided"].After}; got != want || o.Lost != "" {
			t.Errorf("%q: %v, %+v", note, got, o)
		}
	}
	if o := c.compare("here", bySignal, "allowed none; absent none; refused 2; undecided none"); o.Lost == "" {
		t.Errorf("it did not say what it asked: %+v", o)
	}
	if len(c.allow) != 3 || len(c.absent) != 1 {
		t.Errorf("a comparison changed the lists: %+v", c)
	}
}

// Every call of which EPERM tells nothing is one of this machine's or another's.
func TestKernelSaysEPERM(t *testing.T) {
	filter := runsc.DefaultConfig().Walls().Filter
	if c := newCensus(filter); runtime.GOARCH == "amd64" && len(c.undecided) != len(kernelSaysEPERM) {
		t.Errorf("%d numbers of %d names", len(c.undecided), len(kernelSaysEPERM))
	}
	for _, n := range kernelSaysEPERM {
		if slices.Contains(filter.Allow, n) {
			t.Errorf("%s is let through: it is asked for by-signal, and can be", n)
		}
	}
	w := runsc.DefaultConfig().Walls()
	before := w.Filter
	answerBySignal(&w)
	if w.Filter.Action != "TRAP" || before.Action != "ERRNO" || !slices.Equal(w.Filter.Allow, before.Allow) || w.Filter.Namespaces {
		t.Errorf("more than the answer changed: %+v, %+v", before, w.Filter)
	}
}

func TestCensusSeesTheLastCount(t *testing.T) {
	c := census{allow: []int{0, 1, 5}, absent: []int{7}, undecided: []int{11}}
	claim := func(e hostile.Event, attempt, note string) hostile.Claim {
		return hostile.Claim{Attempt: attempt, Route: "all", Event: e, Note: note}
	}
	good, bad := "allowed 0-1,5; absent 7; refused 3; undecided none", "allowed 0-2,5; absent 7; refused 2; undecided none"
	o := c.seen("here", hostile.Claims{Claims: []hostile.Claim{
		claim(hostile.Stopped, "census", bad), claim(hostile.Stopped, "census", good), claim(hostile.Reached, "census", bad), claim(hostile.Stopped, "other", bad),
	}})
	if o.Lost != "" || o.Values["beyond"].After != 0 {
		t.Errorf("%+v", o)
	}
	if o := c.seen("here", hostile.Claims{Claims: []hostile.Claim{claim(hostile.Happened, "census", bad)}}); o.Values["beyond"].After != 1 {
		t.Errorf("a count that happened is a count: %+v", o)
	}
	if o := c.seen("here", hostile.Claims{Claims: []hostile.Claim{claim(hostile.Reached, "census", good)}}); o.Lost == "" || o.Observer != "census" {
		t.Errorf("nothing was counted: %+v", o)
	}
}

func TestCensusOfTheProfile(t *testing.T) {
	c := newCensus(runsc.DefaultConfig().Walls().Filter)
	if control := c.Control(t.Context()); !control.Passed {
		t.Errorf("%+v", control)
	}
	if len(c.allow) < 50 || !slices.IsSorted(c.allow) {
		t.Errorf("%d entry points: %v", len(c.allow), c.allow)
	}
	c = newCensus(&runsc.Filter{Allow: []string{"read", "no_such_call"}})
	if control := c.Control(t.Context()); control.Passed || !strings.Contains(control.Reason, "no_such_call") {
		t.Errorf("%+v", control)
	}
	if o := c.compare("here", "all", "allowed 0; absent none; refused 3; undecided none"); o.Lost == "" {
		t.Errorf("compared with a list that is not known: %+v", o)
	}
}

func FuzzCensusCompare(f *testing.F) {
	for _, s := range []string{"allowed 0-1,5; absent 7; refused 3; by EPERM 3; undecided none", "allowed 0-4096; absent 0-4096; refused 0; undecided 0-4096", "", "; ; ", "allowed 0-1-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, note string) {
		c := census{allow: []int{0, 1, 5}, absent: []int{7}, undecided: []int{11}}
		o := c.compare("here", "all", note)
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
		if len(o.Values) != 7 || v("through") > 2*syscalls.MaxNumber+2 || v("beyond") > v("through")+v("absent") || v("missing") > int64(len(c.allow)+len(c.absent)) {
			t.Errorf("%+v", o)
		}
		if v("through")+v("absent")-v("beyond") < int64(len(c.allow))-v("missing")-v("undecided") {
			t.Errorf("entry points of the list are nowhere: %+v", o)
		}
	})
}
