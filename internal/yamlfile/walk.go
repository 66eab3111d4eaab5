package yamlfile

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// walk compares a document with the struct that it is read into, since the
// parser tells only the first fault, in Go's words, and not always its line.
type walk struct {
	shorten func(string) string
	faults  []error
}

func (w *walk) fault(line int, field, format string, args ...any) {
	w.faults = append(w.faults, FieldError{Field: w.shorten(field), Line: line, Problem: fmt.Sprintf(format, args...)})
}

// document takes what is wrong out of the document, and reports whether there is
// anything left to read.
func (w *walk) document(body ast.Node, v any) bool {
	if body.Type() == ast.NullType {
		return false
	}
	m, ok := body.(*ast.MappingNode)
	if !ok {
		w.fault(lineOfNode(body), "", "fields are wanted, not %s: write NAME: VALUE, one a line", called(body))
		return false
	}
	w.fields(m, reflect.TypeOf(v).Elem(), "")
	return len(m.Values) > 0
}

// fields takes out of m what is wrong, and what has no value.
func (w *walk) fields(m *ast.MappingNode, t reflect.Type, path string) {
	m.Values = slices.DeleteFunc(m.Values, func(f *ast.MappingValueNode) bool {
		if f.Key.IsMergeKey() {
			return false // the parser's
		}
		name, line := f.Key.GetToken().Value, lineOfNode(f.Key)
		field := strings.TrimPrefix(path+"."+name, ".")
		into, ok := fieldOf(t, name)
		if !ok {
			w.fault(line, "", "unknown field %q", w.shorten(field))
			return true
		}
		return !w.value(f.Value, into, field, line)
	})
}

// value reports whether the node is to be read: it has a value, and no fault.
func (w *walk) value(n ast.Node, t reflect.Type, field string, line int) bool {
	switch n.Type() {
	case ast.NullType:
		return false
	case ast.AliasType, ast.AnchorType, ast.TagType:
		return true // the parser's
	}
	m, isFields := n.(*ast.MappingNode)
	s, isList := n.(*ast.SequenceNode)
	words, own := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	switch {
	case own && (isFields || isList):
		w.fault(line, field, "one value is wanted, not %s", called(n))
		return false
	case own:
		if err := words.UnmarshalText([]byte(textOf(n))); err != nil {
			w.fault(line, field, "%s", w.shorten(err.Error()))
			return false
		}
		return true
	case t.Kind() == reflect.Struct && isFields:
		w.fields(m, t, field)
		return len(m.Values) > 0
	case t.Kind() == reflect.Slice && isList:
		before := len(w.faults)
		for i, item := range s.Values {
			w.value(item, t.Elem(), fmt.Sprintf("%s[%d]", field, i), lineOfNode(item))
		}
		return len(w.faults) == before
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Slice, isFields, isList:
		w.fault(line, field, "%s wanted, not %s", wanted(t), called(n))
		return false
	}
	into := reflect.New(t)
	_, fraction := n.(*ast.FloatNode) // of which the parser would keep the whole part
	cut := fraction && (into.Elem().CanInt() || into.Elem().CanUint())
	if cut || yaml.NodeToValue(n, into.Interface(), yaml.Strict()) != nil {
		w.fault(line, field, "%s wanted, not %s", wanted(t), called(n))
		return false
	}
	return true
}

// textOf is a single value as text.
func textOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return n.GetToken().Value
}

// fieldOf is the type of the struct's field of that name.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Tag.Get("yaml") == name {
			return f.Type, true
		}
	}
	return nil, false
}

func lineOfNode(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// wanted names what a field holds, with its verb.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number is"
	case reflect.Float32, reflect.Float64:
		return "a number is"
	case reflect.Bool:
		return "true or false is"
	case reflect.Slice:
		return "a list is"
	case reflect.Struct:
		return "fields are"
	}
	return "text is"
}

// called names what stands there instead.
func called(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "fields"
	case ast.SequenceType:
		return "a list"
	case ast.IntegerType:
		return "a number so large"
	case ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number with a fraction"
	case ast.BoolType:
		return "true or false"
	}
	return "text"
}
