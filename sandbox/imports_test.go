package sandbox

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImportsNoRuntime holds the contract to its word: nothing that the
// package is built from starts programs, drives a runtime or is another part
// of the harness.
func TestImportsNoRuntime(t *testing.T) {
	const module = "tenwalls.dev/harness/"
	own := map[string]bool{
		module + "sandbox":                    true,
		module + "sandbox/id":                 true,
		module + "sandbox/evidence":           true,
		module + "sandbox/internal/printable": true,
	}
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, out)
	}
	seen := 0
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		switch {
		case own[dep]:
			seen++
		case dep == "os/exec", dep == "plugin",
			strings.HasPrefix(dep, module),
			strings.Contains(dep, "runsc"), strings.Contains(dep, "gvisor"),
			strings.Contains(dep, "opencontainers/runtime-spec"),
			strings.Contains(dep, "netlink"), strings.Contains(dep, "x/sys"):
			t.Errorf("imports %s", dep)
		}
	}
	if seen != len(own) {
		t.Errorf("%d of the package's own %d packages in:\n%s", seen, len(own), out)
	}
}
