package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
)

// The worst that guests can do in every route of the catalogue at once still
// gives a report of less than 2 MB, and the effect is still told.
func TestAReportOfHostileGuestsStaysSmall(t *testing.T) {
	r := exampleReport()
	r.Trials = nil
	worst := strings.Repeat("\u009b", hostile.MaxNote/2)
	for _, a := range hostile.Catalogue() {
		for _, route := range a.Routes {
			trial := heldTrial(a.Step, a.Name, route.Name, hostile.Refusal{Kind: hostile.EPERM, Place: hostile.EntryPointFilter})
			for i := range 40 {
				event := []hostile.Event{hostile.Progress, hostile.Reading, hostile.Stopped}[i%3]
				c := hostile.Claim{Nonce: "n0", Attempt: a.Name, Route: route.Name, Event: event, Note: worst, Call: worst}
				if event == hostile.Stopped {
					c.Kind, c.Place = hostile.EPERM, hostile.EntryPointFilter
				}
				trial.Claims = append(trial.Claims, c)
			}
			trial.Claims = append(trial.Claims, hostile.Claim{Nonce: "n0", Attempt: a.Name, Route: route.Name, Event: hostile.Happened, Note: worst})
			for i := range 8 { // as many observers
				o := observers.Observation{Observer: fmt.Sprint("observer-", i), Place: "main", Samples: 1}
				for range 2 * observers.MaxFound {
					o.Find(worst)
				}
				trial.Observations = append(trial.Observations, o)
				trial.Controls = append(trial.Controls, trial.Controls[0])
				trial.Wants = append(trial.Wants, trial.Wants[0])
			}
			r.Trials = append(r.Trials, trial)
		}
	}
	Bound(r.Trials)
	for i := range r.Trials {
		trial := &r.Trials[i]
		n := slices.IndexFunc(trial.Claims, func(c hostile.Claim) bool { return c.Event == hostile.Happened })
		if n != len(trial.Claims)-1 {
			t.Fatalf("%s: the effect is claim %d of %d", trial.ID, n, len(trial.Claims))
		}
		if trial.Said.Beyond+len(trial.Claims) != 43 {
			t.Fatalf("%s: %d claims kept, %d counted as beyond, of 43", trial.ID, len(trial.Claims), trial.Said.Beyond)
		}
		trial.Claim = &trial.Claims[n]
	}
	data := mustEncode(t, r)
	t.Logf("%d trials, %d bytes", len(r.Trials), len(data))
	if len(data) >= 2_000_000 {
		t.Errorf("%d bytes for %d trials", len(data), len(r.Trials))
	}
}

func TestBoundLeavesOrdinaryEvidenceAlone(t *testing.T) {
	r := exampleReport()
	Bound(r.Trials)
	want := exampleReport()
	for i := range want.Trials { // Go's empty list and no list are one in the report
		if want.Trials[i].Claims == nil {
			want.Trials[i].Claims = []hostile.Claim{}
		}
	}
	if string(mustEncode(t, want)) != string(mustEncode(t, r)) {
		t.Error("the report of an ordinary run changed")
	}
}

// One chatty trial gets what the quiet ones leave.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		needs []int
		total int
		want  []int
	}{
		{nil, 10, []int{}},
		{[]int{1, 2, 3}, 10, []int{1, 2, 3}},
		{[]int{100, 1, 2}, 10, []int{7, 1, 2}},
		{[]int{100, 100, 2}, 10, []int{4, 4, 2}},
	} {
		if got := shares(c.needs, c.total); !slices.Equal(got, c.want) {
			t.Errorf("shares(%v, %d) = %v, want %v", c.needs, c.total, got, c.want)
		}
	}
}

// A thing found never looks like nothing found.
func TestBoundKeepsOneLineOfEachFinding(t *testing.T) {
	trials := make([]Trial, 4)
	for i := range trials {
		for range 300 {
			o := observers.Observation{Observer: "residue"}
			for range observers.MaxFound {
				o.Find(strings.Repeat("x", 1000))
			}
			trials[i].Observations = append(trials[i].Observations, o)
		}
	}
	Bound(trials)
	for _, trial := range trials {
		for _, o := range trial.Observations {
			if len(o.Found) == 0 || !strings.HasPrefix(o.Found[0], "x") || len(o.Found[0]) > maxFinding {
				t.Fatalf("found %.40q", o.Found)
			}
		}
	}
}

// However many trials share the room, and however long the words, an effect is told.
func TestBoundKeepsEachEffect(t *testing.T) {
	trials := make([]Trial, 1000)
	for i := range trials {
		trials[i].Claims = []hostile.Claim{
			{Event: hostile.Reached, Call: "short"},
			{Event: hostile.Happened, Note: strings.Repeat("\u009b", 1000)},
			{Event: hostile.Happened, Note: strings.Repeat("\u009b", 1000)},
		}
	}
	Bound(trials)
	for _, trial := range trials {
		if n := len(trial.Claims); n == 0 || trial.Claims[n-1].Event != hostile.Happened || trial.Said.Beyond != 3-n {
			t.Fatalf("kept %v, %d beyond", trial.Claims, trial.Said.Beyond)
		}
	}
}
