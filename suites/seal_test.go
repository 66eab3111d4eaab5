package suites

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

func cellNamed(t *testing.T, name string) *Cell {
	t.Helper()
	i := slices.IndexFunc(cells, func(c *Cell) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no cell %s", name)
	}
	return cells[i]
}

func sealed(t *testing.T, c *Cell, want []*Trial) (sandbox.Job, hostile.Order) {
	t.Helper()
	j, err := newSitting(c, fakeScene(), nil, want).seal(id.New(sandbox.PrefixJob))
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	o, err := hostile.ParseOrder(j.Argv[1])
	if err != nil {
		t.Fatal(err)
	}
	return j, o
}

func TestSealAsksWhatIsWanted(t *testing.T) {
	c := cellNamed(t, "disk")
	j, o := sealed(t, c, c.trials[:2])
	if !slices.Equal(o.Routes, []string{"disk/large-file", "disk/small-files"}) || o.Nonce != fakeScene().Nonce || o.Params["scratch_bytes"] != "67108864" {
		t.Errorf("order %+v", o)
	}
	if got, want := o.Params["hold_ms"], text((10 * sampleLatest).Milliseconds()); got != want {
		t.Errorf("what a fallen wall lets through stays for %q ms, which is not the %s ms of ten samples", got, want)
	}
	if err := j.Validate(); err != nil || j.Network != sandbox.NetworkDenied || j.Argv[0] != guestPath {
		t.Errorf("job %+v: %v", j, err)
	}
	if _, ok := o.Params["claims_file"]; ok {
		t.Error("claims are written to scratch, which the quota has to find empty")
	}
	_, o = sealed(t, cellNamed(t, "leftover-cancelled"), cellNamed(t, "leftover-cancelled").trials)
	if o.Params["claims_file"] != sandbox.ScratchPath+"/"+claimsFile {
		t.Errorf("the harness cannot see that the act is reached: %v", o.Params)
	}
	_, o = sealed(t, cellNamed(t, "outside"), cellNamed(t, "outside").trials)
	if o.Params["linger_ms"] == "" || slices.Contains(o.Routes, "namespaces/own-five") {
		t.Errorf("order %+v", o)
	}
}

// What a cap leaves behind is only there to be found when the cap ends the job:
// the job makes its attempt also when nothing but its remains is asked for.
func TestSealOfWhatACapLeavesMakesTheAttempt(t *testing.T) {
	for cell, attempt := range map[string]string{
		"processor-spinner": "processor/spinner", "memory-anonymous": "memory/anonymous", "disk-stdout": "disk/stdout-flood",
		"wallclock": "wallclock/sleeper",
	} {
		c := cellNamed(t, cell)
		i := slices.IndexFunc(c.trials, func(t *Trial) bool { return t.Attempt == hostile.Leftover })
		if i < 0 {
			t.Fatalf("cell %s has no leftover trial", cell)
		}
		if _, o := sealed(t, c, c.trials[i:i+1]); !slices.Contains(o.Routes, attempt) {
			t.Errorf("cell %s, asked for %s alone: the payload is told %v", cell, c.trials[i].Name(), o.Routes)
		}
	}
}

func TestSealTheNeighbour(t *testing.T) {
	s := fakeScene()
	j, err := newSitting(neighbourCell, s, nil, nil).seal(id.New(sandbox.PrefixJob))
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Inputs) != 1 || j.Inputs[0].Path != s.neighbour.Name || !strings.Contains(string(s.shelf.take(j.Inputs[0].Ref)), s.neighbour.Secret) {
		t.Errorf("inputs %+v", j.Inputs)
	}
	if strings.Contains(fmt.Sprint(j.Argv, j.Env), s.neighbour.Secret) {
		t.Error("the secret is inside without having been read")
	}
}

func TestAsked(t *testing.T) {
	c := cellNamed(t, "disk")
	s := newSitting(c, fakeScene(), nil, c.trials[:1])
	for name, want := range map[[2]string]bool{
		{"disk", "large-file"}: true, {"disk", "small-files"}: false, {"memory", "large-file"}: false, {"", ""}: false,
	} {
		if got := s.asked(name[0], name[1]); got != want {
			t.Errorf("asked%v = %t", name, got)
		}
	}
}

func TestAwaitClaim(t *testing.T) {
	said := `{"nonce":"NONCE","attempt":"leftover","route":"cancelled","event":"reached"}` + "\n"
	gone := make(chan struct{})
	close(gone)
	for _, tt := range []struct {
		name, said string
		ended      chan struct{}
		ok         bool
	}{
		{"said", said, nil, true},
		{"said before it ended", said, gone, true},
		{"another run's", strings.Replace(said, "NONCE", "OTHER", 1), gone, false},
		{"another event", strings.Replace(said, "reached", "progress", 1), gone, false},
		{"nothing", "", gone, false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, claimsFile), []byte(tt.said), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := awaitClaim(t.Context(), dir, "NONCE", tt.ended); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// It comes while it is awaited.
	dir := t.TempDir()
	late := make(chan error, 1)
	go func() { late <- awaitClaim(t.Context(), dir, "NONCE", nil) }()
	if err := os.WriteFile(filepath.Join(dir, claimsFile), []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := awaitClaim(ctx, t.TempDir(), "NONCE", nil); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("no file at all: %v", err)
	}
}
