package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/suites"
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

// Every observer that a trial asks, and whose control needs no running sandbox,
// has a remedy; and no remedy is of an observer that nobody asks.
func TestEveryObserverHasARemedy(t *testing.T) {
	asked := map[string]bool{}
	for _, trial := range suites.Trials() {
		for _, w := range trial.Wants {
			if beside := []string{"census", "clock", "listing", "output"}; !slices.Contains(beside, w.Observer) {
				asked[w.Observer] = true
			}
		}
	}
	for name := range asked {
		if remedies[name] == "" {
			t.Errorf("observer %s has no remedy", name)
		}
	}
	for name := range remedies {
		if !asked[name] {
			t.Errorf("nobody asks observer %s", name)
		}
	}
}

// What a control saw and missed is told with the remedy, a part's error too.
func TestFindings(t *testing.T) {
	got := ofControl(observers.Control{Observer: "link", Effect: "one datagram", Want: "1 packet", Seen: "0 packets", Reason: "no link"})
	want := finding{Name: "observer link", Seen: "one datagram: wanted 1 packet, saw 0 packets: no link", Remedy: remedies["link"]}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	got = ofControl(observers.Control{Observer: "link", Seen: "1 packet", Passed: true})
	if want = (finding{Name: "observer link", OK: true, Seen: "saw 1 packet"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	got = ofPart(suites.Part{Name: suites.PartSwap, Err: errors.New("no such account")})
	if want = (finding{Name: suites.PartSwap, Note: true, Seen: "no such account", Remedy: partRemedies[suites.PartSwap]}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if ailing([]finding{got, ofPart(suites.Part{Name: suites.PartTmpfs, Err: errors.New("EPERM")})}) != 1 {
		t.Error("swap that is not accounted fails the doctor, or a tmpfs that cannot be mounted does not")
	}
}
