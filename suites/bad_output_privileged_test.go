//go:build privileged

package suites

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

// claimedTrial is a trial that rests on the payload's claim alone, so that what
// is printed is all that there is.
func claimedTrial(t *testing.T) *Trial {
	t.Helper()
	all := Trials()
	i := slices.IndexFunc(all, func(tr *Trial) bool {
		return tr.By == reports.ByClaim && len(tr.Wants) == 0 && tr.Expected.Kind == hostile.EPERM
	})
	if i < 0 {
		t.Fatal("no trial rests on a claim alone")
	}
	return all[i]
}

// judged is the trial whose job printed that.
func judged(t *testing.T, tr *Trial, nonce string, stdout []byte) reports.Trial {
	t.Helper()
	secrets, err := observers.NewSecrets(observers.Local(), []string{"a secret of sixteen bytes or more"})
	if err != nil {
		t.Fatal(err)
	}
	s := newSitting(tr.cell, &Scene{Nonce: nonce, shelf: newShelf(), cfg: runsc.DefaultConfig()}, &eyes{secrets: secrets, counts: newCounts()}, []*Trial{tr})
	s.watch = &watching{stop: make(chan struct{})}
	ev := &cellEvidence{place: tr.cell.Name}
	res := sandbox.Result{State: sandbox.StateExited, Reason: string(runsc.ReasonExited), Stdout: stdout}
	if err := s.collect(ev, res, ""); err != nil {
		t.Fatal(err)
	}
	return Judge(ev.trial(tr.Under(s.scene.cfg).report(tr.cell.Name), func(string) []observers.Control { return nil }, nil))
}

// The program in the image may have been replaced: whatever it prints, only the
// run's own claims about what was asked count.
func TestReplacedPayload(t *testing.T) {
	tr := claimedTrial(t)
	claim := func(nonce, attempt, route string, e hostile.Event) string {
		c := hostile.Claim{Nonce: nonce, Attempt: attempt, Route: route, Event: e}
		if e == hostile.Stopped {
			r := tr.Under(runsc.DefaultConfig()).Expected
			c.Kind, c.Place = r.Kind, r.Place
		}
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(line) + "\n"
	}
	both := func(nonce, attempt, route string) string {
		return claim(nonce, attempt, route, hostile.Reached) + claim(nonce, attempt, route, hostile.Stopped)
	}
	const nonce = "the nonce of this run"
	honest := both(nonce, tr.Attempt.Name, tr.Route)
	if got := judged(t, tr, nonce, []byte(honest)); got.Verdict != hostile.Held {
		t.Fatalf("the honest payload: %s %s", got.Verdict, got.Reason)
	}
	noise := make([]byte, 1<<20)
	rnd := rand.NewChaCha8([32]byte{})
	if _, err := rnd.Read(noise); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		stdout  string
		verdict hostile.Verdict
		said    func(reports.Said) bool
	}{
		{"nothing", "", hostile.Silent, func(s reports.Said) bool { return s == reports.Said{} }},
		{"binary noise", string(noise), hostile.Silent, func(s reports.Said) bool { return s.Noise > 100 && s.Foreign == 0 }},
		{"one endless line", strings.Repeat("x", 8<<20), hostile.Silent, func(s reports.Said) bool { return s.Noise == 1 }},
		{"a claim of another run", both("the nonce of another run", tr.Attempt.Name, tr.Route), hostile.Silent, func(s reports.Said) bool { return s.Foreign == 2 }},
		{"a claim without a nonce", both("", tr.Attempt.Name, tr.Route), hostile.Silent, func(s reports.Said) bool { return s.Foreign == 2 }},
		{"a claim of what was not asked", both(nonce, "no attempt", "no route"), hostile.Silent, func(s reports.Said) bool { return s.Foreign == 2 }},
		{"escapes around a claim", "\x1b[2J\x1b[H" + strings.ReplaceAll(honest, "\n", "\x1b[0m\n"), hostile.Silent, func(s reports.Said) bool { return s.Noise == 2 }},
		{"refused without an act", claim(nonce, tr.Attempt.Name, tr.Route, hostile.Stopped), hostile.Silent, func(s reports.Said) bool { return s.Noise == 0 }},
		{"a million lines first", strings.Repeat("x\n", 1e6) + honest, hostile.Held, func(s reports.Said) bool { return s.Noise == 1e6 }},
		{"a claim of the fall at the end", honest + claim(nonce, tr.Attempt.Name, tr.Route, hostile.Happened), hostile.Fell, func(s reports.Said) bool { return s.Noise == 0 }},
		{"claims beyond the bound", strings.Repeat(claim(nonce, tr.Attempt.Name, tr.Route, hostile.Progress), hostile.MaxClaims) + honest, hostile.Silent, func(s reports.Said) bool { return s.Beyond == 2 }},
	} {
		got := judged(t, tr, nonce, []byte(c.stdout))
		if got.Verdict != c.verdict || !c.said(got.Said) {
			t.Errorf("%s: %s (%s), said %+v, want %s", c.name, got.Verdict, got.Reason, got.Said, c.verdict)
		}
		if data, err := json.Marshal(got); err != nil || bytes.Contains(data, []byte{0x1b}) {
			t.Errorf("%s: the trial carries a terminal's escapes (%v)", c.name, err)
		}
	}
}
