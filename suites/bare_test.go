package suites

import (
	"os"
	"strings"
	"testing"

	"tenwalls.dev/harness/sandbox/runsc"
)

// The measure is of one route a step, in order: nothing twice, nothing beyond.
func TestBareTrials(t *testing.T) {
	step := 0
	for _, tr := range bareTrials() {
		if step++; tr.Attempt.Step != step || tr.Route != tr.Attempt.Routes[0].Name {
			t.Errorf("place %d: %s", step, tr.ID())
		}
	}
	if step != 10 {
		t.Errorf("%d trials, want 10", step)
	}
}

// Whoever cannot run it is told why before anything is made.
func TestBareWithoutCgroups(t *testing.T) {
	cfg := runsc.DefaultConfig()
	cfg.StateDir = t.TempDir()
	cfg.Runtime.Path = "/no/such/runsc"
	cfg.CgroupParent = "/tenwalls-bare-test"
	sum, err := Bare(t.Context(), cfg)
	want := "no such file"
	if os.Geteuid() != 0 {
		want = "not root"
	}
	if sum != 0 || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s, %v", sum, err)
	}
}
