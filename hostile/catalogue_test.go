package hostile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCatalogueOrder(t *testing.T) {
	all := Catalogue()
	if len(all) < 10 {
		t.Fatalf("%d attempts", len(all))
	}
	for i, a := range all[:10] {
		if a.Step != i+1 {
			t.Errorf("place %d: %s is step %d", i, a.Name, a.Step)
		}
	}
	var checks []string
	for _, a := range all[10:] {
		if a.Step != 0 {
			t.Errorf("%s is step %d, behind the ten", a.Name, a.Step)
		}
		checks = append(checks, a.Name)
	}
	if !slices.IsSorted(checks) || len(checks) == 0 {
		t.Errorf("contract checks out of order: %v", checks)
	}
}

// The words of the ten are the contract's; reports of years compare by them.
func TestCatalogueNames(t *testing.T) {
	var got []string
	for _, a := range Catalogue() {
		got = append(got, a.Label())
	}
	want := []string{
		"step 1 credentials", "step 2 connection", "step 3 disk", "step 4 processes", "step 5 processor", "step 6 memory",
		"step 7 outside", "step 8 neighbour", "step 9 metadata", "step 10 leftover", "contract artifacts", "contract boot", "contract census",
		"contract identity", "contract limits", "contract namespaces", "contract output", "contract privileges", "contract wallclock",
	}
	if !slices.Equal(got, want) {
		t.Errorf("catalogue\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCatalogueSaysEverything(t *testing.T) {
	for _, a := range Catalogue() {
		if strings.Contains(a.Name, "-") || !nameFormat.MatchString(a.Name) {
			t.Errorf("%q is not one lower-case word", a.Name)
		}
		for what, s := range map[string]string{"title": a.Title, "tries": a.Tries, "expected": a.Expected, "why": a.Why} {
			if strings.TrimSpace(s) == "" {
				t.Errorf("%s has no %s", a.Name, what)
			}
		}
		seen := map[string]bool{}
		for _, r := range a.Routes {
			if seen[r.Name] || !nameFormat.MatchString(r.Name) || r.Title == "" {
				t.Errorf("%s: route %+v", a.Name, r)
			}
			seen[r.Name] = true
			if got, ok := a.Route(r.Name); !ok || got != r {
				t.Errorf("%s: Route(%q) = %+v, %t", a.Name, r.Name, got, ok)
			}
		}
	}
}

func TestCatalogueIsTheCallersOwn(t *testing.T) {
	first := Catalogue()
	first[0], first[1] = nil, nil
	if again := Catalogue(); again[0] != Credentials || again[1] != Connection {
		t.Error("a caller changed the catalogue")
	}
}

func TestFind(t *testing.T) {
	for _, a := range Catalogue() {
		if got, ok := Find(a.Name); !ok || got != a {
			t.Errorf("Find(%q) = %v, %t", a.Name, got, ok)
		}
		if got, ok := Find(fmt.Sprint(a.Step)); a.Step != 0 && (!ok || got != a) {
			t.Errorf("Find(%d) = %v, %t", a.Step, got, ok)
		}
	}
	for _, n := range []string{"", "0", "11", "-1", "05", "Memory", "memor", "memory ", "processor/relay"} {
		if got, ok := Find(n); ok {
			t.Errorf("Find(%q) = %s", n, got.Name)
		}
	}
	if r, ok := Memory.Route("no-such"); ok || r != (Route{}) {
		t.Errorf("Route = %+v, %t", r, ok)
	}
}

func TestRegisterPanics(t *testing.T) {
	good := Attempt{Name: "fresh", Routes: []Route{{Name: "plain", Title: "plainly"}}}
	for name, spoil := range map[string]func(*Attempt){
		"name that is there":    func(a *Attempt) { a.Name = "memory" },
		"step that is there":    func(a *Attempt) { a.Step = 6 },
		"no name":               func(a *Attempt) { a.Name = "" },
		"name with a space":     func(a *Attempt) { a.Name = "two words" },
		"name in upper case":    func(a *Attempt) { a.Name = "Fresh" },
		"name with a hyphen up": func(a *Attempt) { a.Name = "fresh-" },
		"step beyond the ten":   func(a *Attempt) { a.Step = 11 },
		"negative step":         func(a *Attempt) { a.Step = -1 },
		"no routes":             func(a *Attempt) { a.Routes = nil },
		"duplicate route":       func(a *Attempt) { a.Routes = append(slices.Clone(a.Routes), a.Routes[0]) },
		"route without a name":  func(a *Attempt) { a.Routes = []Route{{Title: "plainly"}} },
		"route without a title": func(a *Attempt) { a.Routes = []Route{{Name: "plain"}} },
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(catalogue)
			t.Cleanup(func() { catalogue = before })
			a := good
			spoil(&a)
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was taken", a)
				}
				if len(catalogue) != len(before) {
					t.Error("it is in the catalogue in spite of the panic")
				}
			}()
			register(a)
		})
	}
	t.Run("good", func(t *testing.T) {
		before := slices.Clone(catalogue)
		t.Cleanup(func() { catalogue = before })
		register(good)
		if got, ok := Find("fresh"); !ok || got.Name != "fresh" {
			t.Error("a good attempt is not in the catalogue")
		}
	})
}
