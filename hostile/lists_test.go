package hostile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// declared returns the values of every constant of that type in words.go.
func declared(t *testing.T, typ string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "words.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != typ {
				continue
			}
			for _, x := range v.Values {
				word, err := strconv.Unquote(x.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, word)
			}
		}
	}
	return out
}

// The closed lists hold every word that is declared, each once, and no other.
func TestListsHoldEveryWord(t *testing.T) {
	for typ, listed := range map[string][]string{"Kind": words(Kinds()), "Place": words(Places())} {
		want := declared(t, typ)
		if len(want) < 10 {
			t.Fatalf("%s: only %d constants were found in words.go", typ, len(want))
		}
		slices.Sort(want)
		slices.Sort(listed)
		if !slices.Equal(listed, want) {
			t.Errorf("%s\nlisted   %q\ndeclared %q", typ, listed, want)
		}
		if len(slices.Compact(listed)) != len(want) || slices.Contains(listed, "") {
			t.Errorf("%s: an empty or a double word in %q", typ, listed)
		}
	}
}

func words[T ~string](list []T) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

func TestListsAreTheCallersOwn(t *testing.T) {
	Kinds()[0], Places()[0] = "spoilt", "spoilt"
	if knownKind("spoilt") || knownPlace("spoilt") || !knownKind(EACCES) || !knownPlace(FileOwnership) {
		t.Error("a caller changed a closed list")
	}
	if knownKind("") || knownPlace("") {
		t.Error("nothing is a word")
	}
}

func TestRefusalString(t *testing.T) {
	for want, r := range map[string]Refusal{
		"no refusal":                   {},
		"EACCES at the file ownership": {EACCES, FileOwnership},
		" at the wall clock":           {Place: WallClock},
	} {
		if got := r.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
