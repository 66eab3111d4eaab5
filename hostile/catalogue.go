package hostile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// Attempt is one of the ten hostile acts, or a contract check beyond them. It
// is written in a file of its own and put into the catalogue by a package
// variable; a duplicate or ill-formed name panics at start.
type Attempt struct {
	Step     int     // 1 to 10; 0 for a contract check beyond the ten
	Name     string  // one lower-case word
	Title    string  // "read a file holding credentials"
	Tries    string  // what the payload does, a sentence or two
	Expected string  // what must come back, and at which place
	Why      string  // why that and nothing weaker
	Routes   []Route // the first is the principal route
}

// Route is one concrete way to make the attempt.
type Route struct {
	Name   string // lower-case words joined by hyphens, unique in its attempt
	Title  string // what is done, for people
	Inside bool   // the payload has code for it; false when only the host can tell
}

var (
	catalogue  []*Attempt
	nameFormat = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// register puts an attempt into the catalogue.
func register(a Attempt) *Attempt {
	if !nameFormat.MatchString(a.Name) || a.Step < 0 || a.Step > 10 || len(a.Routes) == 0 {
		panic(fmt.Sprintf("hostile: attempt %q (step %d): bad name, step or no routes", a.Name, a.Step))
	}
	for _, b := range catalogue {
		if b.Name == a.Name || (a.Step != 0 && b.Step == a.Step) {
			panic(fmt.Sprintf("hostile: attempt %q (step %d) is in the catalogue already", a.Name, a.Step))
		}
	}
	seen := map[string]bool{}
	for _, r := range a.Routes {
		if !nameFormat.MatchString(r.Name) || seen[r.Name] || r.Title == "" {
			panic(fmt.Sprintf("hostile: attempt %q: bad or duplicate route %q", a.Name, r.Name))
		}
		seen[r.Name] = true
	}
	catalogue = append(catalogue, &a)
	return &a
}

// Catalogue returns every attempt: steps 1 to 10, then the contract checks by
// name. The slice is the caller's own; the attempts are shared and must not be
// changed.
func Catalogue() []*Attempt {
	out := slices.Clone(catalogue)
	slices.SortStableFunc(out, func(a, b *Attempt) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// order puts the contract checks, which have step 0, behind the ten.
func order(a *Attempt) int {
	if a.Step == 0 {
		return 11
	}
	return a.Step
}

// Find returns the attempt with that name or step number ("6", "memory").
func Find(name string) (*Attempt, bool) {
	for _, a := range catalogue {
		if a.Name == name || (a.Step != 0 && fmt.Sprint(a.Step) == name) {
			return a, true
		}
	}
	return nil, false
}

// Route returns the route of that name.
func (a *Attempt) Route(name string) (Route, bool) {
	i := slices.IndexFunc(a.Routes, func(r Route) bool { return r.Name == name })
	if i < 0 {
		return Route{}, false
	}
	return a.Routes[i], true
}

// Label names the attempt as the specs and reports do: "step 5 processor", or
// "contract wallclock".
func (a *Attempt) Label() string {
	if a.Step == 0 {
		return "contract " + a.Name
	}
	return fmt.Sprintf("step %d %s", a.Step, a.Name)
}
