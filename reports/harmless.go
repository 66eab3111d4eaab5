package reports

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Harmless returns s in one line that no terminal, XML reader or page can take
// for anything but text. A report carries words of the guest, which is hostile:
// escape sequences, line breaks, direction overrides, bytes that are no UTF-8.
// Each of those is written as a Go escape ("\x1b", "\u202e"), and so is each
// combining mark, so that every rune left stands in one or two columns. Doing it
// twice changes nothing more; what was there to the byte stands in report.json.
func Harmless(s string) string {
	if isHarmless(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case harmlessRune(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}

func isHarmless(s string) bool {
	for _, r := range s {
		if !harmlessRune(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// harmlessRune says no to everything that Go does not count as printable
// (controls, format characters, private use, unassigned, spaces but the plain
// one), and to what prints in no column.
func harmlessRune(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0': // the Hangul fillers: letters that print as nothing
		return false
	}
	return unicode.IsPrint(r) && !unicode.Is(unicode.M, r)
}

// columns is how wide a terminal shows s, which must be [Harmless].
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns follows Unicode Standard Annex 11: wide and fullwidth runes take
// two columns. An ambiguous one is counted as one, as terminals do outside East
// Asian locales.
func runeColumns(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

const ellipsis = "..."

// short is s made harmless and cut to at most limit columns, limit >= 4.
func short(s string, limit int) string {
	// Every byte of s gives at most one rune here: nothing beyond limit runes
	// is needed, so a megabyte of noise costs no more than a line.
	if len(s) > limit*utf8.UTFMax {
		s = s[:limit*utf8.UTFMax]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		return cut(Harmless(s)+ellipsis, limit)
	}
	return cut(Harmless(s), limit)
}

// cut shortens a harmless s to at most limit columns.
func cut(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	n := 0
	for i, r := range s {
		if n += runeColumns(r); n > limit-len(ellipsis) {
			return s[:i] + ellipsis
		}
	}
	return s
}

// wrap breaks a harmless s into lines of at most limit columns, at spaces where
// there are any. limit is at least 2; an empty s gives one empty line.
func wrap(s string, limit int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(s) {
		w := columns(word)
		if used > 0 && used+1+w <= limit {
			line, used = line+" "+word, used+1+w
			continue
		}
		if used > 0 {
			lines = append(lines, line)
		}
		for w > limit { // a word wider than the line is broken where the line ends
			head := fill(word, limit)
			lines = append(lines, head)
			word = word[len(head):]
			w = columns(word)
		}
		line, used = word, w
	}
	return append(lines, line)
}

// fill returns the longest prefix of s within limit columns.
func fill(s string, limit int) string {
	n := 0
	for i, r := range s {
		if n += runeColumns(r); n > limit {
			return s[:i]
		}
	}
	return s
}
