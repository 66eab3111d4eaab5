package suites

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

func partedNames(r *run) (needs, rest []string) {
	n, o := r.parted()
	for _, c := range n {
		needs = append(needs, c.Name)
	}
	for _, c := range o {
		rest = append(rest, c.Name)
	}
	return needs, rest
}

func TestPartedHoldsEveryCellOnce(t *testing.T) {
	eyes := &eyes{all: map[string]observers.Observer{"listing": outputObserver{}}}
	r := &run{trials: Trials(), eyes: eyes}
	needs, rest := partedNames(r)
	all := slices.Sorted(slices.Values(slices.Concat(needs, rest)))
	var want []string
	for _, c := range cells {
		if !c.Witness {
			want = append(want, c.Name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Errorf("sit: %v\nwant: %v", all, want)
	}
	if !slices.Contains(needs, "neighbour-walk") || !slices.Contains(needs, "processes") || len(needs) != 2 {
		t.Errorf("beside the neighbour: %v", needs)
	}
	_, cells := r.parted()
	for i := 1; i < len(cells); i++ {
		if cells[i-1].Cost < cells[i].Cost {
			t.Errorf("%s (%s) comes before %s (%s)", cells[i-1].Name, cells[i-1].Cost, cells[i].Name, cells[i].Cost)
		}
	}
}

// A cell whose observer could not be made needs no neighbour, and still sits.
func TestPartedOfASelection(t *testing.T) {
	r := &run{trials: []*Trial{find(t, "processes/parent"), find(t, "disk/tmp")}, eyes: &eyes{}}
	needs, rest := partedNames(r)
	if len(needs) != 0 || !slices.Equal(rest, []string{"disk", "processes"}) {
		t.Errorf("beside the neighbour %v, alone %v", needs, rest)
	}
	r.trials = []*Trial{find(t, "neighbour/walk")}
	if needs, rest = partedNames(r); !slices.Equal(needs, []string{"neighbour-walk"}) || len(rest) != 0 {
		t.Errorf("beside the neighbour %v, alone %v", needs, rest)
	}
}

func TestFields(t *testing.T) {
	name := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(name, []byte("Name:\trunsc: x\nUid:\t65534\t65534\t65534\t65534\nNoNewPrivs:\t1\nno colon\n\nEmpty:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := fields(name)
	for k, want := range map[string]string{"Name": "runsc: x", "Uid": "65534 65534 65534 65534", "NoNewPrivs": "1", "Empty": ""} {
		if v, ok := got[k]; !ok || v != want {
			t.Errorf("%s = %q", k, v)
		}
	}
	if len(got) != 4 {
		t.Errorf("%q", got)
	}
	if got := fields(name + "-gone"); got == nil || len(got) != 0 {
		t.Errorf("of no file: %v", got)
	}
}

// Two jobs of one configuration are read back alike.
func TestBootFlags(t *testing.T) {
	flags := func(job, fd string) string {
		dir := "/state/jobs/" + job
		cmd := strings.Join([]string{
			"runsc-sandbox", "--root=" + dir + "/root", "--platform=systrap", "--network=none", "boot", "--bundle=" + dir,
			"--controller-fd=" + fd, "--mounts-fd=" + fd, "--start-sync-fd=" + fd, "--gofer-mount-confs=lisafs:none", "-pid=" + fd, "--oci-seccomp=true", job, "",
		}, "\x00")
		return bootFlags([]byte(cmd), runsc.Traces{Dir: dir, Container: job})
	}
	const want = "--platform=systrap --network=none boot --gofer-mount-confs=lisafs:none --oci-seccomp=true"
	if a, b := flags("job_1", "7"), flags("job_2", "12"); a != want || b != want {
		t.Errorf("%s\n%s\nwant %s", a, b, want)
	}
}

// The evidence of a cell goes to its trials: each its own claims, each observer
// once, with the run's where the cell has none.
func TestEvidenceOfATrial(t *testing.T) {
	trial := find(t, "outside/create")
	ev := heldEvidence()
	run := map[string]observers.Observation{"trees": saw("trees", nil), "mounts": saw("mounts", map[string]int64{"root_writable": 1})}
	asked := []string{}
	rt := trial.report("outside")
	rt.Wants = slices.Concat(rt.Wants, rt.Wants) // two wants over one observer
	got := ev.trial(rt, func(n string) []observers.Control {
		asked = append(asked, n)
		return []observers.Control{controlled(n)}
	}, run)
	if len(got.Claims) != 1 || got.Claims[0].Route != "create" || got.Said != (reports.Said{Foreign: 1, Noise: 2, Beyond: 3}) {
		t.Errorf("claims %+v, said %+v", got.Claims, got.Said)
	}
	var names []string
	for _, o := range got.Observations {
		names = append(names, o.Observer)
		if o.Observer == "mounts" && o.Values["root_writable"].After != 0 {
			t.Error("the run's observation hides the cell's own")
		}
	}
	if !slices.Equal(names, []string{"trees", "mounts"}) || !slices.Equal(asked, names) || len(got.Controls) != 2 {
		t.Errorf("observers %v, controls of %v", names, asked)
	}
	if got.Ended != ev.ended || got.Trouble != "t" || got.Job != "outside" {
		t.Errorf("%+v", got)
	}
	delete(run, "trees")
	if got = ev.trial(trial.report("outside"), func(string) []observers.Control { return nil }, run); len(got.Observations) != 1 || len(got.Controls) != 0 {
		t.Errorf("observations %+v, controls %+v", got.Observations, got.Controls)
	}
}

// A cell is sat again only where others alone explain what it lacks.
func TestDisturbed(t *testing.T) {
	cfg := runsc.DefaultConfig()
	r := &run{trials: Trials(), scene: &Scene{cfg: cfg}}
	grant := int64(cfg.Limits.Scratch)
	place := ""
	for _, tr := range Trials() {
		if tr.Route == "large-artifact" {
			place = tr.cell.Name
		}
	}
	evidence := func(drop, held, scratch int64) *cellEvidence {
		return &cellEvidence{place: place, observations: map[string]observers.Observation{
			"space": saw("space", map[string]int64{"drop": drop, "held": held, "scratch": scratch}),
		}}
	}
	if by, is := r.disturbed(evidence(grant+1, 0, 0)); !is || by != grant+1 {
		t.Errorf("others took %d: %v", by, is)
	}
	lost := evidence(grant+1, 0, 0)
	o := lost.observations["space"]
	o.Lost = "its window"
	lost.observations["space"] = o
	trouble := evidence(grant+1, 0, 0)
	trouble.trouble = "not run"
	for what, ev := range map[string]*cellEvidence{
		"within the grant": evidence(grant, 0, 0), "a file of the job": evidence(grant+1, heldTolerance+1, 0), "behind the scratch": evidence(grant+1, 0, 1),
		"lost": lost, "trouble": trouble, "no observation": {place: place},
	} {
		if _, is := r.disturbed(ev); is {
			t.Errorf("%s: sat again", what)
		}
	}
}
