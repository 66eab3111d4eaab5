package runsc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"tenwalls.dev/harness/sandbox"
)

// The list is closed: every constant of the source is in it, once.
func TestReasonsAreAll(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []Reason
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		word, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		declared = append(declared, Reason(word))
		return true
	})
	if !slices.Equal(declared, Reasons()) {
		t.Errorf("Reasons() = %v, declared are %v", Reasons(), declared)
	}
}

// Only a program that ended by itself has exited: a cap is never a success.
func TestReasonState(t *testing.T) {
	for _, r := range append(Reasons(), "unheard of", "") {
		want := sandbox.StateFailed
		switch r {
		case "exited":
			want = sandbox.StateExited
		case "cancelled":
			want = sandbox.StateCancelled
		}
		if got := r.State(); got != want || !got.Terminal() {
			t.Errorf("%q: state %s, want %s", r, got, want)
		}
	}
}
