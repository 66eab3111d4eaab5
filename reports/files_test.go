package reports

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder returns the names and contents of what stands in dir.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			out[e.Name()] = "folder"
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

func mustWrite(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	if err := WriteFiles(dir, files); err != nil {
		t.Fatal(err)
	}
}

func qualifiedFiles() map[string][]byte {
	return map[string][]byte{
		ReportFile: []byte("r1"), JUnitFile: []byte("j1"), CapabilitiesFile: []byte("c1"), AttestationFile: []byte("a1"),
	}
}

func TestWriteFilesMakesTheFolderAndEveryFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out", "run")
	mustWrite(t, dir, qualifiedFiles())
	want := map[string]string{ReportFile: "r1", JUnitFile: "j1", CapabilitiesFile: "c1", AttestationFile: "a1"}
	if diff := cmp.Diff(want, folder(t, dir)); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
	info, err := os.Stat(filepath.Join(dir, ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestWriteFilesRemovesWhatTheRunDoesNotProduce(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, qualifiedFiles())
	for name, data := range map[string]string{"notes.txt": "mine", temporary + "report.json-77": "half"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, dir, map[string][]byte{ReportFile: []byte("r2"), JUnitFile: []byte("j2")})
	want := map[string]string{ReportFile: "r2", JUnitFile: "j2", "notes.txt": "mine"}
	if diff := cmp.Diff(want, folder(t, dir)); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestWriteFilesRefusesBeforeItTouchesAnything(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, qualifiedFiles())
	before := folder(t, dir)
	for _, name := range []string{"../report.json", "other.json", ""} {
		if err := WriteFiles(dir, map[string][]byte{name: nil}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if diff := cmp.Diff(before, folder(t, dir)); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}

	taken := t.TempDir()
	if err := os.Mkdir(filepath.Join(taken, JUnitFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(taken, CapabilitiesFile), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := WriteFiles(taken, map[string][]byte{ReportFile: []byte("r")})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(taken, JUnitFile)) {
		t.Errorf("err = %v", err)
	}
	want := map[string]string{JUnitFile: "folder", CapabilitiesFile: "old"}
	if diff := cmp.Diff(want, folder(t, taken)); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestWriteFilesIntoAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := WriteFiles(path, qualifiedFiles())
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "choose a folder") {
		t.Errorf("err = %v", err)
	}
}

// A link of that name is replaced and never written through.
func TestWriteFilesDoesNotFollowALink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, ReportFile)); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, dir, map[string][]byte{ReportFile: []byte("r")})
	if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
		t.Errorf("victim is %q, %v", got, err)
	}
	if diff := cmp.Diff(map[string]string{ReportFile: "r"}, folder(t, dir)); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}
