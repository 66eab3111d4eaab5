// Package yamlfile reads a configuration file strictly and says all that is
// wrong with it, by file, line and field.
//
// What this package does not prove: that the values make sense. That is the
// business of whoever defines the fields; what is found wrong is a [FieldError],
// which [Locate] finds in the file.
package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// Decode reads exactly one YAML document into v, a pointer to a struct, over
// what v holds already: a field without a value keeps the one that it has, and
// so does everything when the document is empty. Unknown fields, fields given
// twice and a second document are refused. shorten makes one harmless line of
// words that may repeat anybody's bytes.
//
// The error joins one [FieldError] a fault. Fields without a fault are in v all
// the same, so that the caller can look at them and tell everything at once. Of
// a file that is no YAML only the first fault is told, and v is as it was.
func Decode(data []byte, v any, shorten func(string) string) error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return parserFault(err, shorten)
	}
	switch {
	case len(file.Docs) > 1:
		return FieldError{Problem: "more than one YAML document: keep one"}
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil
	}
	w := walk{shorten: shorten}
	if w.document(file.Docs[0].Body, v) {
		// With what was wrong taken out; what the walk does not know, such as an
		// alias, is found here.
		if err := yaml.NodeToValue(file.Docs[0].Body, v, yaml.Strict()); err != nil {
			w.faults = append(w.faults, parserFault(err, shorten))
		}
	}
	return errors.Join(w.faults...)
}

// Empty tells whether there is nothing in the file: no document, or one of
// comments alone.
func Empty(data []byte) bool {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return false
	}
	for _, d := range file.Docs {
		if d.Body != nil {
			return false
		}
	}
	return true
}

// parserFault is what the parser refuses, without its excerpt of the file.
func parserFault(err error, shorten func(string) string) error {
	var at yaml.Error
	if !errors.As(err, &at) {
		return FieldError{Problem: shorten(err.Error())}
	}
	f := FieldError{Problem: shorten(at.GetMessage())}
	if t := at.GetToken(); t != nil && t.Position != nil {
		f.Line = t.Position.Line
	}
	if strings.Contains(at.GetMessage(), "character '\t'") || strings.Contains(at.GetMessage(), "tab character") {
		f.Problem = "indented with a tab; YAML wants spaces"
	}
	return f
}

// FieldError is a wrong value of one field, with what to do about it.
type FieldError struct {
	Field   string // its path in the file: "limits.memory", "runtime.flags[0]"; empty where the file itself is wrong
	Problem string
	Line    int // from 1; 0 where it is not known, and Locate looks for the field
}

func (e FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// Locate adds the file, and the line where there is one, to each of the errors
// that are joined in err, and puts them in the order of the file. What is wrong
// with a field that the file leaves out is told only when nothing else is wrong
// in the same section: its default does not fit to what is given, and would
// perhaps fit to what is meant. what is the kind of file, in words.
func Locate(err error, data []byte, what, file string) error {
	type fault struct {
		err     error
		line    int
		section string
		leftOut bool
	}
	var all []fault
	given := map[string]bool{} // sections with a fault of their own
	for _, e := range joined(err) {
		l := fault{err: e}
		var f FieldError
		if errors.As(e, &f) {
			if l.line = f.Line; l.line == 0 {
				l.line = lineOf(data, f.Field)
			}
			l.section = f.Field[:max(0, strings.LastIndexByte(f.Field, '.'))]
			l.leftOut = l.line == 0 && f.Field != ""
			given[l.section] = given[l.section] || !l.leftOut
		}
		all = append(all, l)
	}
	all = slices.DeleteFunc(all, func(l fault) bool { return l.leftOut && given[l.section] })
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var out []error
	for _, l := range all {
		where := file
		if l.line > 0 {
			where = fmt.Sprintf("%s:%d", file, l.line)
		}
		words := ""
		if l.leftOut {
			words = " (the file leaves it out: this is about its default)"
		}
		out = append(out, fmt.Errorf("%s %s: %w%s", what, where, l.err, words))
	}
	return errors.Join(out...)
}

// joined is every error that was joined, also within another.
func joined(err error) (out []error) {
	list, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range list.Unwrap() {
		out = append(out, joined(e)...)
	}
	return out
}

// lineOf finds the line on which a field's value stands; 0 when the field is
// not in the file (its default is wrong only together with something else).
func lineOf(data []byte, field string) int {
	if field == "" {
		return 0
	}
	path, err := yaml.PathString("$." + field)
	if err != nil {
		return 0
	}
	node, err := path.ReadNode(bytes.NewReader(data))
	if err != nil || node == nil || node.GetToken() == nil {
		return 0
	}
	return node.GetToken().Position.Line
}
