//go:build privileged

package metrics

import (
	"os/exec"
	"strings"
	"testing"
)

// Prometheus's own checker finds nothing to say.
func TestPromtoolCheckMetrics(t *testing.T) {
	for name, s := range map[string]State{"nothing": {}, "everything": example()} {
		cmd := exec.Command("promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(text(t, s))
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: promtool (Debian's package prometheus): %v: %s", name, err, out)
		}
	}
}
