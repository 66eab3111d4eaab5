package suites

import (
	"errors"
	"strings"
	"testing"

	"tenwalls.dev/harness/fixtures"
)

// An observer whose part of the scene is missing fails its control with words;
// the others are made.
func TestEyesWithoutNetworkAndImage(t *testing.T) {
	s := &Scene{dir: t.TempDir(), neighbour: Neighbour{Secret: "a secret of this run, long enough"}}
	wanted := map[string]bool{"space": true, "namespaces": true}
	missing := map[string]string{
		"egress": "network", "link": "network", "routes": "network", "residue": "network", "canary": "image",
	}
	for name := range missing {
		wanted[name] = true
	}
	e, err := openEyes(s, wanted)
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range missing {
		c := e.of(name)
		if len(c) != 1 || c[0].Passed || !strings.Contains(c[0].Reason, "the "+part+", which could not be made") {
			t.Errorf("%s without the %s: %+v", name, part, c)
		}
	}
	if len(e.all) != 2 || e.all["space"] == nil || e.all["namespaces"] == nil {
		t.Errorf("made: %v", e.all)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// The observers of one link share its wire, and so its lock: else each counts
// the other's control.
func TestEyesShareTheWire(t *testing.T) {
	s := &Scene{world: &fixtures.World{}}
	e := &eyes{}
	first, err := e.wire(s)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := e.wire(s); err != nil || first != second {
		t.Errorf("%p and %p, %v", first, second, err)
	}
}

func TestPartsAreTold(t *testing.T) {
	var x Examination
	why := errors.New("EPERM")
	if !x.try("a", "made", nil) || x.try("b", "made", why) {
		t.Error("what is there is taken for missing, or the other way round")
	}
	if len(x.Parts) != 2 || x.Parts[0] != (Part{Name: "a", Seen: "made"}) || x.Parts[1] != (Part{Name: "b", Err: why}) {
		t.Errorf("%+v", x.Parts)
	}
}
