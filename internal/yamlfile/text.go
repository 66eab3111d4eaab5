package yamlfile

import (
	"encoding"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// refused is a value that its own type refused, and where it stands.
type refused struct {
	line  int
	field string
	err   error
}

func (r *refused) Error() string { return r.err.Error() }
func (r *refused) Unwrap() error { return r.err }

// Text is how a type that reads text takes a node, so that what it refuses is
// told with line and field: the parser alone tells neither. For a type's
// UnmarshalYAML.
func Text(node ast.Node, into encoding.TextUnmarshaler) error {
	var text string
	switch n := node.(type) {
	case *ast.NullNode:
		return nil // a field without a value keeps its default
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	case ast.ScalarNode:
		text = n.GetToken().Value
	default:
		text = node.String()
	}
	err := into.UnmarshalText([]byte(text))
	if err == nil {
		return nil
	}
	return &refused{node.GetToken().Position.Line, strings.TrimPrefix(node.GetPath(), "$."), err}
}

func (r *refused) told(file string, shorten func(string) string) string {
	return fmt.Sprintf("%s:%d: %s: %s", file, r.line, r.field, shorten(r.err.Error()))
}
