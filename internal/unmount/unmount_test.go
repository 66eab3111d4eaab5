package unmount

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes the file with its folders.
func write(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func there(name string) bool { _, err := os.Lstat(name); return err == nil }

// Links in the tree are removed, and what they lead to stays.
func TestRemoveFollowsNoLink(t *testing.T) {
	base := t.TempDir()
	dir, theirs := filepath.Join(base, "dir"), filepath.Join(base, "theirs")
	write(t, filepath.Join(theirs, "deep", "file"))
	write(t, filepath.Join(dir, "a", "b", "file"))
	link(t, theirs, filepath.Join(dir, "to-folder"))
	link(t, filepath.Join(theirs, "deep", "file"), filepath.Join(dir, "a", "to-file"))
	link(t, "../..", filepath.Join(dir, "a", "up"))
	link(t, "loop", filepath.Join(dir, "loop"))
	if err := Remove(t.Context(), dir); err != nil || there(dir) {
		t.Errorf("%v, still there: %t", err, there(dir))
	}
	// The folder itself is a link: that goes, and nothing else.
	link(t, theirs, dir)
	if err := Remove(t.Context(), dir); err != nil || there(dir) {
		t.Errorf("a link: %v, still there: %t", err, there(dir))
	}
	if !there(filepath.Join(theirs, "deep", "file")) {
		t.Error("somebody else's file was removed through a link")
	}
}

func TestRemoveOfWhatIsNotThere(t *testing.T) {
	for _, dir := range []string{"absent", "absent/deep"} {
		if err := Remove(t.Context(), filepath.Join(t.TempDir(), dir)); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file)
	if err := Remove(t.Context(), file); err != nil || there(file) {
		t.Errorf("a file: %v", err)
	}
}

func TestRefusesPathsThatMayMeanMore(t *testing.T) {
	for _, dir := range []string{"", "/", "relative", "/a/../b", "/a/", "."} {
		for what, err := range map[string]error{"below": Below(t.Context(), dir), "remove": Remove(t.Context(), dir)} {
			if err == nil || !strings.Contains(err.Error(), "must be absolute") {
				t.Errorf("%s %q: %v", what, dir, err)
			}
		}
	}
}
