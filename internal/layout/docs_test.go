package layout

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
)

// pages are where the attempts are told, the ten and those beyond.
var pages = []string{"attempts.md", "contract-checks.md"}

var (
	attemptHeading = regexp.MustCompile("^## (?:Step (\\d+)|Contract): .*\\(`([a-z-]+)`\\)$")
	firstCell      = regexp.MustCompile("^\\| `([a-z0-9-]+)` \\|")
)

// The tables of routes name exactly the routes of the catalogue, in its order.
func TestRoutesAreDocumented(t *testing.T) {
	var want, got []string
	for _, a := range hostile.Catalogue() {
		for _, r := range a.Routes {
			want = append(want, a.Label()+": "+r.Name)
		}
	}
	for _, page := range pages {
		label := ""
		for line := range strings.Lines(read(t, page)) {
			line = strings.TrimSpace(line)
			if m := attemptHeading.FindStringSubmatch(line); m != nil {
				label = "contract " + m[2]
				if m[1] != "" {
					label = "step " + m[1] + " " + m[2]
				}
			}
			if m := firstCell.FindStringSubmatch(line); m != nil && label != "" {
				got = append(got, label+": "+m[1])
			}
		}
	}
	compare(t, strings.Join(pages, " and "), got, want)
}

// The table of observers names each that has a name, and no other.
func TestObserversAreDocumented(t *testing.T) {
	var want, got []string
	eachFile(t, func(path, part string, f *ast.File) {
		if (part != "observers" && part != "suites") || strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			if name, ok := namedByMethod(d); ok {
				want = append(want, name)
			}
		}
	})
	for line := range strings.Lines(read(t, "observers.md")) {
		if m := firstCell.FindStringSubmatch(line); m != nil {
			got = append(got, m[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	compare(t, "observers.md", got, want)
}

// namedByMethod is what a method Name() string { return "..." } returns.
func namedByMethod(d ast.Decl) (string, bool) {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil || f.Name.Name != "Name" || f.Body == nil || len(f.Body.List) != 1 {
		return "", false
	}
	r, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return "", false
	}
	l, ok := r.Results[0].(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	name, err := strconv.Unquote(l.Value)
	return name, err == nil
}

var link = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)

// A page that was moved or split leaves no link behind that leads nowhere.
func TestLinksLeadSomewhere(t *testing.T) {
	all, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(all) < 10 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	for _, page := range append(all, "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if m[1] == "" || strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
		if n := strings.Count(string(data), "\n"); n > 400 {
			t.Errorf("%s has %d lines: files stay under 400", page, n)
		}
	}
}

func read(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func compare(t *testing.T, where string, got, want []string) {
	t.Helper()
	if len(want) < 10 {
		t.Fatalf("only %d names were found in the code: the walk is wrong", len(want))
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s lacks %q", where, w)
		}
	}
	for i, g := range got {
		if !slices.Contains(want, g) || slices.Contains(got[:i], g) {
			t.Errorf("%s has %q, which is not there or twice", where, g)
		}
	}
	if !t.Failed() && !slices.Equal(got, want) {
		t.Errorf("%s has another order: %q, want %q", where, got, want)
	}
}
