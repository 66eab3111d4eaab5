package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/gowebpki/jcs"

	"tenwalls.dev/harness/sandbox/evidence"
)

// maxInteger is the largest integer that every JSON reader keeps exactly:
// RFC 8785 writes numbers as IEEE 754 doubles (section 3.2.2.3).
const maxInteger = 1<<53 - 1

// Canonical returns v as canonical JSON (RFC 8785): the bytes that are hashed
// and signed. Where encoding/json and RFC 8785 would silently change a value,
// it returns an error, because two different values must never share their
// canonical form: a number beyond 2^53-1, which would be rounded, and a string
// that is not valid UTF-8, which would be patched.
func Canonical(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	if err := checkExact(plain); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	canonical, err := jcs.Transform(plain)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return canonical, nil
}

// digestOf returns the digest of v's canonical JSON.
func digestOf(v any) (string, error) {
	canonical, err := Canonical(v)
	if err != nil {
		return "", err
	}
	return evidence.Digest(canonical), nil
}

// checkExact looks through the output of json.Marshal for what was lost or is
// about to be lost.
func checkExact(plain []byte) error {
	for at := 0; at < len(plain); {
		var err error
		switch c := plain[at]; {
		case c == '"':
			at, err = checkString(plain, at+1)
		case c == '-' || '0' <= c && c <= '9':
			at, err = checkNumber(plain, at)
		default:
			at++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkString walks the string whose first byte is at and returns the place
// after its closing quote. json.Marshal writes the escape \ufffd only in place
// of a byte that is not UTF-8: a true U+FFFD is written as it stands.
func checkString(plain []byte, at int) (int, error) {
	for at < len(plain) && plain[at] != '"' {
		if plain[at] != '\\' {
			at++
			continue
		}
		if at+6 <= len(plain) && string(plain[at:at+6]) == `\ufffd` {
			return at, errors.New("a string is not valid UTF-8")
		}
		at += 2
	}
	return at + 1, nil
}

// checkNumber checks the number that begins at and returns the place after it.
// Fractions are doubles already, as Go writes them, so only magnitude counts.
func checkNumber(plain []byte, at int) (int, error) {
	end := at
	for end < len(plain) && (plain[end] == '-' || plain[end] == '+' || plain[end] == '.' ||
		plain[end] == 'e' || plain[end] == 'E' || '0' <= plain[end] && plain[end] <= '9') {
		end++
	}
	value, err := strconv.ParseFloat(string(plain[at:end]), 64)
	if err != nil {
		return end, fmt.Errorf("number: %w", err)
	}
	if value > maxInteger || value < -maxInteger {
		return end, fmt.Errorf("number %s is beyond 2^53-1 and would be rounded", plain[at:end])
	}
	return end, nil
}
