//go:build privileged

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// promtool runs Prometheus's own checker (Debian's package prometheus).
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPromtoolCheckRules(t *testing.T) {
	promtool(t, ".", "check", "rules", rulesFile)
}

func TestPromtoolTestRules(t *testing.T) {
	promtool(t, filepath.Dir(rulesTestFile), "test", "rules", filepath.Base(rulesTestFile))
}

// The queries of the dashboard are checked as recording rules.
func TestPromtoolChecksTheDashboard(t *testing.T) {
	var rules []map[string]string
	for _, p := range theDashboard(t).Panels {
		for _, q := range p.Targets {
			rules = append(rules, map[string]string{
				"record": "panel:query_" + strconv.Itoa(len(rules)), "expr": strings.ReplaceAll(q.Expr, "$instance", ".*"),
			})
		}
	}
	data, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "panels.yml"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "panels.yml")
}
