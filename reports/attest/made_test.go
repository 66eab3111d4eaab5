package attest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func exampleDigest(c string) string { return "sha256:" + strings.Repeat(c, 64) }

// folder is the files of dir by name.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}
