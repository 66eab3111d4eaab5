package reports

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
)

type schemaNode struct {
	Type                 any                   `json:"type"`
	Enum                 []string              `json:"enum"`
	Properties           map[string]schemaNode `json:"properties"`
	Required             []string              `json:"required"`
	AdditionalProperties any                   `json:"additionalProperties"`
	Items                *schemaNode           `json:"items"`
	Defs                 map[string]schemaNode `json:"$defs"`
}

func readSchema(t *testing.T) schemaNode {
	t.Helper()
	var s schemaNode
	if err := json.Unmarshal(SchemaJSON(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Every field of every type stands in the schema under its JSON name, required
// unless it may be left out, and nothing else does.
func TestSchemaAndTypesNameTheSameFields(t *testing.T) {
	s := readSchema(t)
	for name, v := range map[string]any{
		"": Report{}, "harness": Harness{}, "host": Host{}, "runtime": Runtime{}, "image": Image{}, "trial": Trial{},
		"want": Want{}, "said": Said{}, "ended": Ended{}, "claim": hostile.Claim{}, "refusal": hostile.Refusal{},
		"observation": observers.Observation{}, "reading": observers.Reading{}, "control": observers.Control{},
	} {
		node := s
		if name != "" {
			node = s.Defs[name]
		}
		var all, required []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			all = append(all, tag)
			if options != "omitempty" {
				required = append(required, tag)
			}
		}
		var inSchema []string
		for p := range node.Properties {
			inSchema = append(inSchema, p)
		}
		slices.Sort(all)
		slices.Sort(inSchema)
		slices.Sort(required)
		slices.Sort(node.Required)
		if !slices.Equal(all, inSchema) || !slices.Equal(required, node.Required) || node.AdditionalProperties != false {
			t.Errorf("%q: type has %v (required %v), schema has %v (required %v), additional %v",
				name, all, required, inSchema, node.Required, node.AdditionalProperties)
		}
	}
}

// The schema's closed lists are the vocabulary's, word for word.
func TestSchemaAndVocabularyNameTheSameWords(t *testing.T) {
	s := readSchema(t)
	trial, claim, want := s.Defs["trial"].Properties, s.Defs["claim"].Properties, s.Defs["want"].Properties
	for _, c := range []struct {
		kind, dir string
		enum      []string
	}{
		{"Kind", "../hostile", s.Defs["refusal"].Properties["kind"].Enum},
		{"Place", "../hostile", s.Defs["refusal"].Properties["place"].Enum},
		{"Kind", "../hostile", claim["kind"].Enum},
		{"Place", "../hostile", claim["place"].Enum},
		{"Event", "../hostile", claim["event"].Enum},
		{"Lift", "../hostile", trial["lifts"].Items.Enum},
		{"Verdict", "../hostile", s.Defs["verdict"].Enum},
		{"Outcome", "../hostile", s.Properties["outcome"].Enum},
		{"By", ".", trial["by"].Enum},
		{"Rule", ".", want["rule"].Enum},
		{"Moment", ".", want["moment"].Enum},
	} {
		words := constants(t, c.dir, c.kind)
		slices.Sort(c.enum)
		if len(words) == 0 || !slices.Equal(words, c.enum) {
			t.Errorf("%s: source says %q, schema says %q", c.kind, words, c.enum)
		}
	}
}

// constants returns the values of the string constants of one type in a package.
func constants(t *testing.T, dir, kind string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != kind {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				s, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, s)
			}
			return true
		})
	}
	slices.Sort(out)
	return out
}

func TestSchemaNamesItself(t *testing.T) {
	if !bytes.Contains(SchemaJSON(), []byte(`"$id": "`+Schema+`"`)) {
		t.Error("the schema's $id is not the report's schema")
	}
}
