package reports

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"plain text, 壁 é":       "plain text, 壁 é",
		"\x1b[31m":              `\x1b[31m`,
		"a\nb\rc\td\x00\x7f":    `a\nb\rc\td\x00\x7f`,
		"\u009b31m":             `\u009b31m`,
		"\u202eabc\u2066":       `\u202eabc\u2066`,
		"\xff\xc3(":             `\xff\xc3(`,
		"e\u0301":               `e\u0301`,
		"a\u00a0b\u2028c":       `a\u00a0b\u2028c`,
		"\ufeff\ufffe":          `\ufeff\ufffe`,
		"\U000e0001\U0010ffff":  `\U000e0001\U0010ffff`,
		"\u3164":                `\u3164`,
		`already \x1b harmless`: `already \x1b harmless`,
	} {
		if got := Harmless(in); got != want {
			t.Errorf("Harmless(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzHarmless(f *testing.F) {
	f.Add(nasty, 10)
	f.Add("壁壁壁 壁", 5)
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 4 + int(uint(width)%100)
		h := Harmless(s)
		if !isHarmless(h) || Harmless(h) != h {
			t.Fatalf("%q", h)
		}
		if c := short(s, width); columns(c) > width || !isHarmless(c) {
			t.Fatalf("short(%q, %d) = %q", s, width, c)
		}
		lines := wrap(h, width)
		for _, l := range lines {
			if columns(l) > width {
				t.Fatalf("line %q of %d columns, width %d", l, columns(l), width)
			}
		}
		if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(h, " ", ""); got != want {
			t.Fatalf("wrapping lost text: %q, want %q", got, want)
		}
	})
}

func TestShortCutsNoRuneAndReadsNoMegabyte(t *testing.T) {
	long := strings.Repeat("壁", 1<<20)
	if got := short(long, 10); got != "壁壁壁..." || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
	if n := testing.AllocsPerRun(10, func() { short(long, 10) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
}
