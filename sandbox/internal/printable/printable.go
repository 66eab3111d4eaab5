// Package printable bounds the text that ends up in reports, logs and signed
// JSON.
//
// What this package does not prove: that a name means what it seems to. Letters
// of different scripts can look alike, and one text can be spelt in several
// Unicode normal forms.
package printable

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// ErrEmpty says that a text is due and there is none.
var ErrEmpty = errors.New("empty")

// Check accepts one line of valid UTF-8 in 1 to limit bytes, all of it
// printable ([unicode.IsPrint]). A control or direction character could
// disguise the text, and a byte that is not UTF-8 would not survive JSON.
func Check(s string, limit int) error {
	switch {
	case s == "":
		return ErrEmpty
	case len(s) > limit:
		return fmt.Errorf("%d bytes, at most %d", len(s), limit)
	case !utf8.ValidString(s):
		return errors.New("not valid UTF-8")
	}
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("%q: character %U is not printable", s, c)
		}
	}
	return nil
}
