package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"tenwalls.dev/harness/hostile"
)

// said is what a payload under that deceit prints for an act that succeeded.
func said(t *testing.T, deceit hostile.Deceit, act func(*Probe)) hostile.Claims {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	expected := hostile.Refusal{Kind: hostile.EROFS, Place: hostile.ReadOnlyMount}
	order := hostile.Order{Nonce: "ours", Params: map[string]string{
		hostile.ParamDeceit: string(deceit), hostile.ParamExpected + "outside/create": expected.Encode(),
	}}
	p := &Probe{attempt: "outside", route: "create", order: order, fd: int(w.Fd()), copies: -1}
	act(p)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	printed, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := hostile.ParseClaims(bytes.NewReader(printed), "ours", func(string, string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

func succeed(p *Probe) {
	p.Reached("open", "")
	p.Happened("open", 1, "it was made")
}

func TestHonestByDefault(t *testing.T) {
	got := said(t, "", succeed)
	if len(got.Claims) != 2 || got.Claims[1].Event != hostile.Happened {
		t.Errorf("an honest payload claims %+v", got)
	}
}

func TestLieNamesTheExpectedRefusal(t *testing.T) {
	got := said(t, hostile.DeceitLie, succeed)
	if len(got.Claims) != 2 || got.Claims[0].Event != hostile.Reached || got.Claims[1].Event != hostile.Stopped ||
		got.Claims[1].Kind != hostile.EROFS || got.Claims[1].Place != hostile.ReadOnlyMount {
		t.Errorf("a lying payload claims %+v", got)
	}
}

func TestNamelessClaimsAreForeign(t *testing.T) {
	if got := said(t, hostile.DeceitNameless, succeed); len(got.Claims) != 0 || got.Foreign != 2 {
		t.Errorf("a nameless payload is heard as %+v", got)
	}
}

func TestPretenceReachesNothing(t *testing.T) {
	got := said(t, hostile.DeceitUnreached, (*Probe).pretend)
	if len(got.Claims) != 1 || got.Claims[0].Event != hostile.Stopped || got.Claims[0].Kind != hostile.EROFS {
		t.Errorf("a pretending payload claims %+v", got)
	}
}
