package main

import (
	"strings"
	"testing"
)

// What is met is told in brief; what is not, in whole, with its remedy.
func TestDiagnosis(t *testing.T) {
	long := strings.Repeat("x", 2*maxBrief)
	got := diagnosis([]finding{
		{Name: "space", OK: true, Seen: long},
		{Name: "mounts", Seen: long, Remedy: "mount it\x1b[2J"},
		{Name: "swap accounting", Note: true, Seen: "none"},
	}, "runner.yaml")
	want := "configuration: runner.yaml\n\n" +
		"ok       space                " + strings.Repeat("x", maxBrief-3) + "...\n" +
		"MISSING  mounts               " + long + "\n" +
		`                              remedy: mount it\x1b[2J` + "\n" +
		"note     swap accounting      none\n\n" +
		"1 of 3 needs are not met: a run here would be unproven.\n"
	if got != want {
		t.Errorf("diagnosis:\n%s\nwant:\n%s", got, want)
	}
}

// An interrupted doctor still says what it could not remove, and only that.
func TestAnInterruptedDoctorSaysWhatIsLeft(t *testing.T) {
	met := finding{Name: "space", OK: true}
	unmet := finding{Name: "mounts", Seen: "no /proc"}
	if err := left([]finding{met, unmet}); err != nil {
		t.Errorf("nothing is left: %v", err)
	}
	err := left([]finding{met, {Name: cleanUp, Seen: "rmdir /x: busy", Remedy: "by hand"}})
	if err == nil || err.Error() != "clean-up: rmdir /x: busy: by hand" {
		t.Errorf("error %v", err)
	}
}
