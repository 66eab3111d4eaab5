package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
)

func TestEveryInsideRouteHasAnImplementation(t *testing.T) {
	var want []string
	for _, a := range hostile.Catalogue() {
		for _, r := range a.Routes {
			if r.Inside {
				want = append(want, a.Name+"/"+r.Name)
			}
		}
	}
	for _, name := range want {
		if routes[name] == nil {
			t.Errorf("route %s of the catalogue has no implementation", name)
		}
	}
	for name := range routes {
		if !slices.Contains(want, name) {
			t.Errorf("implementation %s is of no inside route of the catalogue", name)
		}
	}
}

func TestRouteRefusesWhatIsNotInTheCatalogue(t *testing.T) {
	for _, c := range []struct{ attempt, route, why string }{
		{"credential", "shadow", "unknown attempt"},
		{"1", "shadow", "a step number, which Find takes, is no name"},
		{"credentials", "passwd", "unknown route"},
		{"leftover", "cpu-capped", "no inside half"},
		{"census", "all", "registered twice"},
	} {
		t.Run(c.why, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Errorf("route(%q, %q) did not panic", c.attempt, c.route)
				}
			}()
			route(c.attempt, c.route, func(*Probe) {})
		})
	}
}

// claimsOf runs routes of an order with their claims on a pipe.
func claimsOf(t *testing.T, order hostile.Order) []hostile.Claim {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, name := range order.Routes {
		tryRoute(name, order, w.Fd(), -1)
	}
	w.Close()
	claims, err := hostile.ParseClaims(r, order.Nonce, func(string, string) bool { return true })
	if err != nil || claims.Noise+claims.Foreign+claims.Beyond != 0 {
		t.Fatalf("claims: %+v, %v", claims, err)
	}
	return claims.Claims
}

// withRoute puts an implementation in the place of another during a test.
func withRoute(t *testing.T, name string, run func(*Probe)) {
	t.Helper()
	was := routes[name]
	routes[name] = run
	t.Cleanup(func() {
		if routes[name] = was; was == nil {
			delete(routes, name)
		}
	})
}

func TestRoutesGoOnAfterOneThatFails(t *testing.T) {
	withRoute(t, "census/all", func(*Probe) { panic("boom") })
	withRoute(t, "identity/nobody", func(*Probe) { panic(errors.New("broke")) })
	withRoute(t, "identity/setuid", func(p *Probe) { p.Param("nothing") })
	withRoute(t, "namespaces/inside", func(p *Probe) { p.Number("size") })
	withRoute(t, "connection/tcp4", func(p *Probe) {
		p.Reached("call", p.Param("size"))
		p.Refused(hostile.EPERM, hostile.Unknown, "call", 3, "why")
	})
	got := claimsOf(t, hostile.Order{
		Nonce: "n", Params: map[string]string{"size": "x"},
		Routes: []string{"census/all", "identity/nobody", "identity/setuid", "namespaces/inside", "no/such", "connection/tcp4"},
	})
	for i, want := range []struct {
		event hostile.Event
		note  string
	}{
		{hostile.Failed, "boom"},
		{hostile.Failed, "broke"},
		{hostile.Failed, `"nothing"`},
		{hostile.Failed, `"size"`},
		{hostile.Failed, "no such route"},
		{hostile.Reached, "x"},
		{hostile.Stopped, "why"},
	} {
		if i >= len(got) || got[i].Event != want.event || !strings.Contains(got[i].Note, want.note) {
			t.Fatalf("claim %d: want %v, got %+v", i, want, got)
		}
	}
	if len(got) != 7 || got[6].Count != 3 || got[6].Attempt != "connection" || got[6].Route != "tcp4" {
		t.Errorf("claims: %+v", got)
	}
}
