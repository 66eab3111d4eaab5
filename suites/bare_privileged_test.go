//go:build privileged

package suites

import (
	"strings"
	"testing"
	"time"
)

// The sum is what the principal payloads of the ten steps take by themselves:
// the spinner's two seconds of processor time are in it, the setting of the
// scene is not, and nothing is left.
func TestBare(t *testing.T) {
	cfg := badConfig(t)
	began := time.Now()
	sum, err := Bare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if whole := time.Since(began); sum < time.Duration(cfg.Limits.CPU) || sum >= whole {
		t.Errorf("%s of %s", sum, whole)
	}
	groundIsClear(t, cfg)
}

// A job that did not run is an error with the trial's name and the runtime's
// words, and no measure.
func TestBareOverABrokenRuntime(t *testing.T) {
	cfg := broken(t, "echo the words of the runtime >&2; exit 128")
	sum, err := Bare(t.Context(), cfg)
	if sum != 0 || err == nil || !strings.Contains(err.Error(), "step-01/credentials/") || !strings.Contains(err.Error(), "the words of the runtime") {
		t.Errorf("%s, %v", sum, err)
	}
	groundIsClear(t, cfg)
}
