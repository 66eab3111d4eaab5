package reports

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
)

var exampleFiles = []string{"out/report.json", "out/junit.xml"}

func mustTable(t testing.TB, r *Report, o TableOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Table(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableIsGolden(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		text := mustTable(t, exampleReport(), TableOptions{Width: width, Files: exampleFiles})
		golden(t, fmt.Sprintf("table-%d.txt", width), []byte(text))
	}
}

func TestLinesAreGolden(t *testing.T) {
	var b bytes.Buffer
	if err := Lines(&b, exampleReport()); err != nil {
		t.Fatal(err)
	}
	golden(t, "lines.txt", b.Bytes())
}

func TestLine(t *testing.T) {
	trial := heldTrial(5, "processor", "relay", hostile.Refusal{Kind: hostile.CPUCap, Place: hostile.ProcessorCap})
	trial.DurationMS = 2003
	want := "held      step 5 processor: relay: cpu cap at the processor cap (2.003 s)"
	if got := Line(&trial); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	trial.Verdict, trial.Reason = hostile.Fell, "ended on the wall clock"
	if got := Line(&trial); !strings.HasPrefix(got, "fell      step 5") || !strings.HasSuffix(got, ": ended on the wall clock") {
		t.Errorf("got %q", got)
	}
}

func TestNoWidthMeansEighty(t *testing.T) {
	r := exampleReport()
	if mustTable(t, r, TableOptions{}) != mustTable(t, r, TableOptions{Width: 80}) {
		t.Error("width 0 is not 80")
	}
}

// Colour adds SGR sequences around verdicts, and nothing else.
func TestColour(t *testing.T) {
	sgr := regexp.MustCompile("\x1b\\[[0-9]+m")
	for _, width := range []int{60, 80} {
		plain := mustTable(t, exampleReport(), TableOptions{Width: width})
		colour := mustTable(t, exampleReport(), TableOptions{Width: width, Color: true})
		if sgr.ReplaceAllString(colour, "") != plain {
			t.Errorf("width %d: colour changes the text", width)
		}
		for _, want := range []string{"\x1b[31mfell", "\x1b[32mheld", "\x1b[33msilent"} {
			if !strings.Contains(colour, want) {
				t.Errorf("width %d: no %q", width, want)
			}
		}
	}
}

func TestEveryTrialThatDidNotHoldIsToldWhy(t *testing.T) {
	r := exampleReport()
	text := mustTable(t, r, TableOptions{Width: 400, Files: exampleFiles})
	for i := range r.Trials {
		trial := &r.Trials[i]
		heading := trial.label() + ": " + trial.Route + ": " + string(trial.Verdict) + "\n"
		if told := strings.Contains(text, heading); told == (trial.Verdict == hostile.Held) {
			t.Errorf("%s (%s): told %v", trial.ID, trial.Verdict, told)
		}
	}
	for _, want := range []string{"What this cannot show\n  The runtime's kernel", "Files\n  out/report.json\n", "refused: 2 fell, 1 misnamed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestTheWorstVerdictGoverns(t *testing.T) {
	order := []hostile.Verdict{hostile.Held, hostile.Silent, hostile.Blind, hostile.Broken, hostile.Misnamed, hostile.Fell}
	for i, low := range order[:len(order)-1] {
		high := order[i+1]
		g := group{trials: []*Trial{{Verdict: low}, {Verdict: high, Route: "this"}, {Verdict: low}, {Verdict: high}}}
		worst, same := g.governing()
		if worst.Route != "this" || same != 2 {
			t.Errorf("%s before %s: got %s, %d", low, high, worst.Verdict, same)
		}
	}
	if badness("fine") == badness(hostile.Held) {
		t.Error("an unknown verdict is as good as held")
	}
}

func TestTheLastLineSaysWhatTheRunIsWorth(t *testing.T) {
	for want, r := range map[string]*Report{
		"qualified: 0 trials":                        {Outcome: hostile.Qualified, Complete: true},
		"unproven: 1 held of 1; interrupted: SIGINT": {Outcome: hostile.Unproven, Complete: true, Interrupted: "SIGINT", Trials: []Trial{{Verdict: hostile.Held}}},
		"qualified: 1 held of 1; not every trial of the set was asked for, so it qualifies nothing": {Outcome: hostile.Qualified, Trials: []Trial{{Verdict: hostile.Held}}},
	} {
		if got := summary(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// checkText holds the forms for people to what they promise.
func checkText(t *testing.T, r *Report, width int) {
	t.Helper()
	text := mustTable(t, r, TableOptions{Width: width, Files: []string{"a\x1bb"}})
	for _, line := range strings.Split(text, "\n") {
		if !isHarmless(line) || columns(line) > width {
			t.Fatalf("width %d: line of %d columns: %q", width, columns(line), line)
		}
	}
	var b bytes.Buffer
	if err := Lines(&b, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(r.Trials)+1 {
		t.Fatalf("%d lines for %d trials", len(lines), len(r.Trials))
	}
	for _, line := range lines {
		if !isHarmless(line) {
			t.Fatalf("harmful line %q", line)
		}
	}
}

func TestTextIsHarmlessAndKeepsItsWidth(t *testing.T) {
	for width := leastWidth; width < 200; width += 7 {
		checkText(t, exampleReport(), width)
		checkText(t, hostileReport(nasty, nasty), width)
		checkText(t, hostileReport(strings.Repeat("壁", 300), "fell"), width)
	}
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestWriteErrorsAreReported(t *testing.T) {
	if err := Table(brokenPipe{}, exampleReport(), TableOptions{}); !errors.Is(err, errPipe) {
		t.Errorf("table: %v", err)
	}
	if err := Lines(brokenPipe{}, exampleReport()); !errors.Is(err, errPipe) {
		t.Errorf("lines: %v", err)
	}
}
