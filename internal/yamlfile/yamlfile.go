// Package yamlfile reads a configuration file strictly and says what is wrong
// with it by file, line and field.
//
// What this package does not prove: that the values make sense. That is the
// business of whoever defines the fields; what is found wrong is a [FieldError],
// which [Locate] finds in the file.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// Decode reads exactly one YAML document into v, over what v holds already.
// Unknown fields, fields given twice and a second document are refused. An empty
// document leaves v as it was or zeroes it, as the parser has it: the caller
// looks. shorten bounds the parser's words, which may repeat anybody's bytes.
// The error is "FILE:LINE: words", in one line.
func Decode(data []byte, file string, v any, shorten func(string) string) error {
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := dec.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return errors.New(parserError(err, file, shorten))
	}
	var extra any
	if err := dec.Decode(&extra); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more than one YAML document: keep one", file)
	}
	return nil
}

// position is how the parser begins its messages: line and column.
var position = regexp.MustCompile(`^\[(\d+):(\d+)\] `)

// parserError leaves out the parser's excerpt of the file.
func parserError(err error, file string, shorten func(string) string) string {
	var r *refused
	if errors.As(err, &r) {
		return r.told(file, shorten)
	}
	words, _, _ := strings.Cut(strings.TrimSpace(yaml.FormatError(err, false, false)), "\n")
	if m := position.FindStringSubmatch(words); m != nil {
		return fmt.Sprintf("%s:%s: %s", file, m[1], shorten(words[len(m[0]):]))
	}
	return file + ": " + shorten(words)
}

// FieldError is a wrong value of one field, with what to do about it.
type FieldError struct {
	Field   string // its path in the file: "limits.memory", "runtime.flags[0]"
	Problem string
}

func (e FieldError) Error() string { return e.Field + ": " + e.Problem }

// Locate adds the file, and the line where there is one, to each of the errors
// that are joined in err. what is the kind of file, in words.
func Locate(err error, data []byte, what, file string) error {
	var list interface{ Unwrap() []error }
	if !errors.As(err, &list) {
		return fmt.Errorf("%s %s: %w", what, file, err)
	}
	var out []error
	for _, e := range list.Unwrap() {
		var f FieldError
		where := file
		if errors.As(e, &f) {
			if line := lineOf(data, f.Field); line > 0 {
				where = fmt.Sprintf("%s:%d", file, line)
			}
		}
		out = append(out, fmt.Errorf("%s %s: %w", what, where, e))
	}
	return errors.Join(out...)
}

// lineOf finds the line on which a field's value stands; 0 when the field is
// not in the file (its default is wrong only together with something else).
func lineOf(data []byte, field string) int {
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
