package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"tenwalls.dev/harness/hostile"
)

func TestWrapped(t *testing.T) {
	for name, c := range map[string]struct {
		width    int
		in, want string
	}{
		"short":         {40, "as it is\n", "as it is\n"},
		"exactly":       {40, strings.Repeat("x", 40) + "\n", strings.Repeat("x", 40) + "\n"},
		"one column":    {40, "one two three four five six seven eight nine\n", "one two three four five six seven eight\n  nine\n"},
		"below a label": {40, "  host      nothing of the job was ever swapped out\n", "  host      nothing of the job was ever\n            swapped out\n"},
		"last label":    {40, "ok    space    saw as much as it was to see there\n", "ok    space    saw as much as it was to\n               see there\n"},
		"late spaces":   {40, "a text that has some late  spaces in it, which align nothing\n", "a text that has some late spaces in it,\n  which align nothing\n"},
		"long word":     {40, "at " + strings.Repeat("y", 50) + " it is\n", "at " + strings.Repeat("y", 37) + "\n  " + strings.Repeat("y", 13) + " it is\n"},
		"no line break": {40, "one two three four five six seven eight nine", "one two three four five six seven eight\n  nine\n"},
		"runes":         {40, strings.Repeat("ä", 40) + "\n", strings.Repeat("ä", 40) + "\n"},
		"runes in half": {40, "ä  " + strings.Repeat("ö ", 20) + "ü\n", "ä " + strings.Repeat("ö ", 18) + "ö\n  ö ü\n"},
		"tiny":          {3, "one two three four five six seven eight nine\n", "one two three four five six seven eight\n  nine\n"},
		"unknown":       {0, strings.Repeat("z", 70) + " and more of it\n", strings.Repeat("z", 70) + " and more\n  of it\n"},
	} {
		if got := wrapped(c.in, c.width); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

// Whatever the words, no line is wider, and no character is lost.
func TestExplanationsStayWithinTheWidth(t *testing.T) {
	letters := func(s string) string { return strings.Join(strings.Fields(s), "") }
	for _, a := range hostile.Catalogue() {
		whole := explanation(a.Label(), describe(a))
		for _, width := range []int{leastWidth, 80, 120} {
			got := wrapped(whole, width)
			if letters(got) != letters(whole) {
				t.Errorf("%s: other words at width %d:\n%s", a.Name, width, got)
			}
			for line := range strings.Lines(got) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: %d columns at width %d: %s", a.Name, n, width, line)
				}
			}
		}
	}
}

func TestALogIsNeitherWrappedNorErased(t *testing.T) {
	var log bytes.Buffer
	long := strings.Repeat("word ", 60) + "end\n"
	if err := tell(&log, long); err != nil || log.String() != long {
		t.Errorf("%q, error %v", log.String(), err)
	}
	if got := fresh(&log); got != "" {
		t.Errorf("before a message: %q", got)
	}
}
