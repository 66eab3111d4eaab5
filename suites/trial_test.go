package suites

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// madeObservers are the names that openEyes makes an observer for, as its
// source says: most cannot be made without root.
func madeObservers(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "eyes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 {
			return true
		}
		if id, ok := a.Lhs[0].(*ast.Ident); !ok || id.Name != "makers" {
			return true
		}
		for _, e := range a.Rhs[0].(*ast.CompositeLit).Elts {
			name, err := strconv.Unquote(e.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, name)
		}
		return false
	})
	if len(out) < 5 {
		t.Fatalf("only the observers %v were found in eyes.go", out)
	}
	return out
}

// Every want names an observer that a run makes, and no observer is made for
// nothing.
func TestWantsNameObserversThatAreMade(t *testing.T) {
	made, used := madeObservers(t), map[string]bool{}
	for _, trial := range Trials() {
		for _, w := range trial.Wants {
			used[w.Observer] = true
			if !slices.Contains(made, w.Observer) {
				t.Errorf("%s: no observer is named %q", trial.ID(), w.Observer)
			}
		}
	}
	for _, n := range made {
		if !used[n] {
			t.Errorf("observer %s is made, and no trial wants it", n)
		}
	}
}

// fakeScene is a scene in which nothing stands.
func fakeScene() *Scene {
	return &Scene{
		Run: "run_1", Nonce: "NONCENONCENONCE", cfg: runsc.DefaultConfig(), shelf: newShelf(), world: &fixtures.World{},
		image:     &fixtures.Image{Digest: "sha256:" + strings.Repeat("0", 64)},
		neighbour: Neighbour{Name: "submission.txt", Folder: "/jobs/neighbour/inputs", Secret: fixtures.NewSecret()},
	}
}

func TestOpenEyes(t *testing.T) {
	if e, err := openEyes(fakeScene(), map[string]bool{"nobody": true}); err == nil || e != nil {
		t.Errorf("an observer that does not exist was made: %v", err)
	}
	names := []string{"output", "census", "clock", "secrets", "listing", "trees"}
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	e, err := openEyes(fakeScene(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	for n, o := range e.all {
		if o.Name() != n {
			t.Errorf("observer %s says that it is %s", n, o.Name())
		}
	}
	if len(e.all) != len(names) || e.trees == nil {
		t.Errorf("made: %v", e.all)
	}
	for n := range e.all {
		if n == "listing" { // its control needs a running neighbour
			continue
		}
		if c := e.all[n].Control(t.Context()); !c.Passed || c.Observer != n {
			t.Errorf("control of %s: %+v", n, c)
		}
	}
}

func TestTrialsAreWellFormed(t *testing.T) {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, c := range cells {
		if c.Name == "" || names[c.Name] {
			t.Errorf("cell %q is there twice, or has no name", c.Name)
		}
		names[c.Name] = true
		if len(c.trials) == 0 && !c.Witness {
			t.Errorf("cell %s asks nothing", c.Name)
		}
		if (len(c.Lifts) > 0) != (c.Change != nil) && !c.Witness && c.Name != "processor-relay" {
			t.Errorf("cell %s: a change of the walls without a lift in the report, or a lift that changes nothing", c.Name)
		}
	}
	for _, c := range cells {
		if c.Beside != "" && !names[c.Beside] {
			t.Errorf("cell %s sits beside %q, which is no cell", c.Name, c.Beside)
		}
	}
	kinds, places := hostile.Kinds(), hostile.Places()
	for _, trial := range Trials() {
		id := trial.ID()
		if ids[id] {
			t.Errorf("%s is there twice", id)
		}
		ids[id] = true
		if len(strings.TrimSpace(trial.Source)) < 10 {
			t.Errorf("%s: its source is %q", id, trial.Source)
		}
		if !slices.Contains(kinds, trial.Expected.Kind) || !slices.Contains(places, trial.Expected.Place) {
			t.Errorf("%s: %q at %q: words outside the closed lists", id, trial.Expected.Kind, trial.Expected.Place)
		}
		if trial.Expected.Kind == hostile.Other || trial.Expected.Place == hostile.Unknown {
			t.Errorf("%s expects %s, which names nothing", id, trial.Expected)
		}
		if !slices.Contains([]reports.By{reports.ByClaim, reports.ByRunner, reports.ByHost}, trial.By) {
			t.Errorf("%s: authority %q", id, trial.By)
		}
		if trial.By != reports.ByClaim && len(trial.Wants) == 0 {
			t.Errorf("%s: nobody on the host is asked", id)
		}
		r, _ := trial.Attempt.Route(trial.Route)
		if !r.Inside && trial.By == reports.ByClaim {
			t.Errorf("%s: the payload has no code that could claim it", id)
		}
		for _, w := range trial.Wants {
			if !slices.Contains([]hostile.Verdict{hostile.Fell, hostile.Misnamed, hostile.Blind}, w.Breach) ||
				!slices.Contains([]reports.Rule{reports.AtMost, reports.AtLeast, reports.Exactly}, w.Rule) ||
				!slices.Contains([]reports.Moment{reports.Worst, reports.After, reports.Growth}, w.Moment) {
				t.Errorf("%s: %+v: words outside the closed lists", id, w)
			}
		}
	}
	if len(ids) == 0 {
		t.Error("there are no trials")
	}
}

func TestIDsAndLabels(t *testing.T) {
	for _, tt := range []struct{ attempt, route, id, labels string }{
		{"processor", "relay", "step-05/processor/relay", "processor route:relay step:5 half:host"},
		{"leftover", "daemon", "step-10/leftover/daemon", "leftover route:daemon step:10 half:host"},
		{"disk", "tmp", "step-03/disk/tmp", "disk route:tmp step:3 half:inside half:host"},
		{"identity", "nobody", "contract/identity/nobody", "identity route:nobody contract half:inside"},
	} {
		trial := find(t, tt.attempt+"/"+tt.route)
		if got := strings.Join(trial.Labels(), " "); trial.ID() != tt.id || got != tt.labels {
			t.Errorf("%s: labels %q, want %s: %q", trial.ID(), got, tt.id, tt.labels)
		}
	}
}

func find(t *testing.T, name string) *Trial {
	t.Helper()
	i := slices.IndexFunc(Trials(), func(x *Trial) bool { return x.Name() == name })
	if i < 0 {
		t.Fatalf("there is no trial %s", name)
	}
	return Trials()[i]
}

func TestSelection(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  []string // attempts
	}{
		{[]string{"6"}, []string{"memory"}},
		{[]string{"memory", "6"}, []string{"memory"}},
		{[]string{"wallclock", "10"}, []string{"leftover", "wallclock"}},
	} {
		sel, err := Selection(tt.names)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, trial := range Trials() {
			if sel(trial) && !slices.Contains(got, trial.Attempt.Name) {
				got = append(got, trial.Attempt.Name)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v", tt.names, got)
		}
	}
	if sel, err := Selection(nil); err != nil || slices.ContainsFunc(Trials(), func(x *Trial) bool { return !sel(x) }) {
		t.Errorf("no names do not select all: %v", err)
	}
	for _, bad := range []string{"", "0", "11", "memmory", "memory/anonymous"} {
		if _, err := Selection([]string{"6", bad}); err == nil || !strings.Contains(err.Error(), strconv.Quote(bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestUnderLeavesTheTrialAlone(t *testing.T) {
	cfg := runsc.DefaultConfig()
	cfg.EntryPoints.Action, cfg.Limits.Processes = "TRAP", 7
	trial := find(t, "processes/parent")
	before := slices.Clone(trial.Wants)
	var bounds []int64
	for _, w := range trial.Under(cfg).Wants {
		bounds = append(bounds, w.Bound)
	}
	if !slices.Equal(bounds, []int64{cfg.Limits.HostTasks, 7, 0, 1}) || !slices.Equal(trial.Wants, before) {
		t.Errorf("bounds %v; the suite's own wants are now %+v", bounds, trial.Wants)
	}
	tcp := find(t, "connection/tcp4")
	if got := tcp.Under(cfg).Expected.Kind; got != hostile.SIGSYS || tcp.Expected.Kind != hostile.EPERM {
		t.Errorf("under TRAP %s, in the suite %s", got, tcp.Expected.Kind)
	}
}

// The numbers of the grant as people know them.
func TestGrantedNumbers(t *testing.T) {
	var in []reports.Want
	for b := int64(grantScratch); b >= grantOutput; b-- {
		in = append(in, reports.Want{Bound: b})
	}
	in = append(in, reports.Want{Bound: 0}, reports.Want{Bound: 1})
	want := []int64{64 << 20, 512, 32, 2e9, 2.25e9, 4e9, 256 << 20, 257 << 20, 0, 10e9, 12e9, 1 << 20, 0, 1}
	for i, w := range granted(in, runsc.DefaultConfig(), &Cell{}) {
		if w.Bound != want[i] {
			t.Errorf("bound %d is filled in as %d, want %d", in[i].Bound, w.Bound, want[i])
		}
	}
	if got := granted([]reports.Want{{Bound: grantOutput - 1}}, runsc.DefaultConfig(), &Cell{}); got[0].Bound >= 0 {
		t.Errorf("a bound that means nothing became %d", got[0].Bound)
	}
}
