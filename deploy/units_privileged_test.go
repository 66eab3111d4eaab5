//go:build privileged

package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnits lets systemd itself read the units: every setting known, every
// program there. The harness stands in for the installed one.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatalf("no systemd-analyze to verify the units with: %v: install systemd", err)
	}
	program := filepath.Join(t.TempDir(), "harness")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	units, err := filepath.Glob("systemd/*")
	if err != nil || len(units) != 3 {
		t.Fatalf("%v, %v", units, err)
	}
	dir := t.TempDir()
	args := []string{"verify", "--man=no"}
	for _, u := range units {
		data, err := os.ReadFile(u)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(u, ".service") && !bytes.Contains(data, []byte("/usr/local/bin/harness ")) {
			t.Errorf("%s starts no harness", u)
		}
		to := filepath.Join(dir, filepath.Base(u))
		if err := os.WriteFile(to, bytes.ReplaceAll(data, []byte("/usr/local/bin/harness "), []byte(program+" ")), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, to)
	}
	out, err := exec.Command(analyze, args...).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	// And it does see what is wrong.
	if err := os.WriteFile(filepath.Join(dir, "wrong.service"), []byte("[Service]\nExecStart=/no/such/program\nColour=blue\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, "wrong.service")).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("Colour")) {
		t.Errorf("a wrong unit passes: %s", out)
	}
}
