// Package layout holds the lines between the packages, each with its reason.
package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const module = "tenwalls.dev/harness/"

// may says which packages of ours each part may import, in the files that are
// not tests.
var may = map[string]struct {
	parts  []string
	reason string
}{
	"sandbox":           {[]string{"sandbox"}, "the contract imports no runtime, so that a broker can use it alone"},
	"sandbox/admission": {[]string{"sandbox", "reports/attest", "hostile"}, "a broker verifies what a daemon published, and carries nothing of what made it"},
	"sandbox/runsc":     {[]string{"sandbox", "internal/bounded", "internal/cgroup", "internal/unmount", "internal/yamlfile"}, "the runner knows nothing of the harness that tries it"},
	"hostile":           {nil, "the vocabulary stands alone"},
	"hostile/guest":     {[]string{"hostile"}, "the payload is small, and trusted by nobody"},
	"observers":         {[]string{"internal/cgroup", "internal/bounded"}, "an observer knows neither the attempts nor the runner that it watches"},
	"fixtures":          {[]string{"sandbox", "observers"}, "fixtures stand in the world and decide nothing"},
	"internal/watch":    {[]string{"sandbox", "sandbox/runsc", "hostile", "reports", "fixtures", "internal/bounded", "internal/cgroup", "internal/yamlfile", "internal/durable"}, "the daemon runs the suite as a child and judges nothing itself"},
	"reports":           {[]string{"hostile", "observers", "internal/syscalls", "internal/durable", "internal/bounded"}, "a report speaks the vocabulary and holds what observers measured"},
	"reports/attest":    {[]string{"hostile", "internal/durable"}, "who only verifies carries neither reports nor observers"},
	"reports/history":   {[]string{"hostile", "reports", "sandbox/evidence", "internal/durable"}, "the ledger tells of reports and knows nobody who makes one"},
	"reports/metrics":   {[]string{"hostile", "reports"}, "metrics tell of reports and the ledger, and know nobody who makes one"},
}

// only says who may import what of others'.
var only = map[string]struct {
	parts  []string
	reason string
}{
	"os/exec":                   {[]string{"sandbox/runsc", "cmd/harness", "internal/act", "internal/cgroup", "observers", "suites", "internal/watch"}, "few places run other programs; observers and cgroup start what they are handed, the daemon starts the suite and hooks"},
	"github.com/onsi/ginkgo/v2": {[]string{"suites"}, "only the suites have specs"},
	"github.com/onsi/gomega":    {[]string{"suites"}, "only the suites assert at run time"},
}

func TestImports(t *testing.T) {
	eachFile(t, func(path, part string, f *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, i := range f.Imports {
			name := strings.Trim(i.Path.Value, `"`)
			if rule, ok := only[name]; ok && !under(part, rule.parts) {
				t.Errorf("%s imports %s: %s", path, name, rule.reason)
			}
			rule, ok := may[part]
			if ours, is := strings.CutPrefix(name, module); ok && is && !under(ours, rule.parts) {
				t.Errorf("%s imports %s: %s", path, name, rule.reason)
			}
		}
	})
}

// A skipped, pending or focused spec says nothing and looks like success.
func TestNoSpecIsSkipped(t *testing.T) {
	forbidden := []string{"Skip", "Pending", "PIt", "FIt", "XIt", "PDescribe", "FDescribe", "XDescribe", "FContext", "FlakeAttempts", "SkipNow", "Skipf"}
	eachFile(t, func(path, _ string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				name = fun.Name
			case *ast.SelectorExpr:
				name = fun.Sel.Name
			}
			for _, bad := range forbidden {
				if name == bad {
					t.Errorf("%s calls %s: an unmet need is the verdict blind or broken, or a test that fails", path, name)
				}
			}
			return true
		})
	})
}

func under(part string, parts []string) bool {
	for _, p := range parts {
		if part == p || strings.HasPrefix(part, p+"/") && p != "sandbox" || p == "sandbox" && strings.HasPrefix(part, "sandbox/") && part != "sandbox/runsc" {
			return true
		}
	}
	return false
}

func eachFile(t *testing.T, do func(path, part string, f *ast.File)) {
	t.Helper()
	const root = "../.."
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "tools" || d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "out") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		do(rel, filepath.Dir(rel), f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Fatalf("only %d files were read: the walk is wrong", seen)
	}
}
