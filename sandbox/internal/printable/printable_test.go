package printable

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, in string
		ok       bool
	}{
		{"ASCII", "a b", true},
		{"letters of any script", "Zoë 東京", true},
		{"replacement character, spelt out", "\ufffd", true},
		{"at the limit", strings.Repeat("x", 16), true},
		{"empty", "", false},
		{"above the limit, in bytes", strings.Repeat("é", 9), false},
		{"not UTF-8", "a\xff", false},
		{"surrogate half", "\xed\xa0\x80", false},
		{"overlong slash", "\xc0\xaf", false},
		{"NUL", "a\x00", false},
		{"newline", "a\nb", false},
		{"terminal escape", "\x1b[2J", false},
		{"DEL", "a\x7f", false},
		{"C1 control", "a\u0085", false},
		{"right-to-left override", "a\u202eb", false},
		{"zero-width space", "a\u200bb", false},
		{"byte order mark", "\ufeffa", false},
		{"line separator", "a\u2028b", false},
		{"no-break space", "a\u00a0b", false},
		{"private use", "\ue000", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := Check(c.in, 16); (err == nil) != c.ok {
				t.Errorf("Check(%q) = %v, want ok %v", c.in, err, c.ok)
			}
		})
	}
}
