// Package id names things: typed-prefix, sortable identifiers in the TypeID
// form, for example sjob_01h455vb4pex5vsknk084sn02q.
//
// An identifier is a prefix that says what is named, an underscore, and a
// version 7 UUID in 26 characters of lower-case Crockford base32, so that
// identifiers of one prefix sort by the millisecond they were made in (TypeID
// specification 0.3, RFC 9562 section 5.7).
//
// What this package does not prove: that a thing of this name exists, who made
// the name, or when. The time inside comes from the maker's clock. An
// identifier is public and is no credential.
package id

import (
	"errors"
	"fmt"
	"strings"

	"go.jetify.com/typeid"
)

// Prefix says what kind of thing an ID names: one to 63 characters of [a-z_],
// beginning and ending with a letter.
type Prefix string

// ID is one identifier. The zero value names nothing and is not valid.
type ID string

// maxLength is a prefix of 63, the separator and a suffix of 26 bytes.
const maxLength = 63 + 1 + 26

var errNoPrefix = errors.New("no prefix")

// New returns a fresh identifier under p. It panics when p is not a valid
// prefix, since prefixes are constants of the program and never input.
func New(p Prefix) ID {
	if p == "" {
		panic(fmt.Errorf("new id: %w", errNoPrefix))
	}
	t, err := typeid.WithPrefix(string(p))
	if err != nil {
		panic(fmt.Errorf("new id: %w", err))
	}
	return ID(t.String())
}

// Parse returns s as an ID, or an error that says what is wrong with it.
func Parse(s string) (ID, error) {
	i := ID(s)
	if err := i.Validate(); err != nil {
		return "", err
	}
	return i, nil
}

// Validate reports whether i is a whole identifier: a prefix and a suffix that
// is not all zero. The suffix may hold another version of UUID than New makes.
func (i ID) Validate() error {
	// The alphabet comes first, so that no error repeats a terminal escape
	// or a megabyte of somebody else's text.
	if len(i) > maxLength {
		return fmt.Errorf("parse id: %d bytes, at most %d", len(i), maxLength)
	}
	if strings.Trim(string(i), "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return fmt.Errorf("parse id %q: only a-z, 0-9 and _ are allowed", string(i))
	}
	t, err := typeid.FromString(string(i))
	switch {
	case err != nil:
		return fmt.Errorf("parse id %q: %w", string(i), err)
	case t.Prefix() == "":
		return fmt.Errorf("parse id %q: %w", string(i), errNoPrefix)
	case t.IsZero():
		return fmt.Errorf("parse id %q: the zero identifier names nothing", string(i))
	}
	return nil
}

// Prefix returns the kind of thing that i names, empty when i has none. Call
// Validate first: an invalid identifier can have a prefix as well.
func (i ID) Prefix() Prefix {
	if cut := strings.LastIndexByte(string(i), '_'); cut > 0 {
		return Prefix(i[:cut])
	}
	return ""
}
