package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	deep := strings.Repeat("a/", 511) + "bb" // 1024 bytes
	for _, c := range []struct {
		name, path string
		ok         bool
	}{
		{"file", "main.py", true},
		{"file in folders", "a/b/c.txt", true},
		{"hidden file", ".profile", true},
		{"three dots", ".../a...", true},
		{"space", "my file", true},
		{"letters of any script", "übung/答え.txt", true},
		{"looks like an option", "-rf", true},
		{"longest component", strings.Repeat("a", 255), true},
		{"longest path", deep, true},
		{"one dot leader", "\u2024\u2024/a", true}, // two characters of text, no dots to any kernel

		{"empty", "", false},
		{"absolute", "/etc/passwd", false},
		{"root", "/", false},
		{"two slashes at the front", "//host/share", false},
		{"here", ".", false},
		{"here inside", "a/./b", false},
		{"up", "..", false},
		{"up in front", "../a", false},
		{"up inside", "a/../../b", false},
		{"up at the end", "a/..", false},
		{"up and back", "a/../a", false},
		{"folder", "a/", false},
		{"empty component", "a//b", false},
		{"backslash", `a\b`, false},
		{"backslash up", `..\a`, false},
		{"drive", `C:\a`, false},
		{"NUL", "a\x00", false},
		{"NUL hides the rest", "a\x00/../b", false},
		{"newline", "a\nb", false},
		{"terminal escape", "\x1b[2Ja", false},
		{"DEL", "a\x7f", false},
		{"not UTF-8", "a\xff", false},
		{"overlong dots and slash", "\xc0\xae\xc0\xae\xc0\xafa", false},
		{"surrogate half", "\xed\xa0\x80", false},
		{"right-to-left override", "a\u202etxt.py", false},
		{"zero-width space", "a\u200b", false},
		{"byte order mark", "\ufeffa", false},
		{"line separator", "a\u2028", false},
		{"long component", strings.Repeat("a", 256), false},
		{"long component in bytes", strings.Repeat("é", 128), false},
		{"long path", deep + "b", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := validatePath(c.path); (err == nil) != c.ok {
				t.Errorf("validatePath(%q) = %v, want ok %v", c.path, err, c.ok)
			}
		})
	}
}

func TestPathSaysWhatIsWrong(t *testing.T) {
	for path, want := range map[string]string{"/etc": "absolute", `a\b`: "backslash", "a/../b": `component ".."`} {
		if err := validatePath(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("validatePath(%q) = %v, want %s", path, err, want)
		}
	}
}

func TestTree(t *testing.T) {
	for _, c := range []struct {
		name  string
		paths []string
		ok    bool
	}{
		{"none", nil, true},
		{"side by side", []string{"a", "b", "c/d", "c/e"}, true},
		{"same beginning, other name", []string{"a", "ab", "a-b", "a.b/c"}, true},
		{"case differs", []string{"a", "A"}, true},
		{"twice", []string{"a", "b", "a"}, false},
		{"file as folder", []string{"a", "a/b"}, false},
		{"file as folder, other order", []string{"a/b", "a"}, false},
		{"file as folder of a folder", []string{"a", "a/b/c"}, false},
		{"file as folder, others between", []string{"a", "a-b", "a/b"}, false},
		{"one bad path", []string{"a", "../b"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := validateTree(c.paths); (err == nil) != c.ok {
				t.Errorf("validateTree(%q) = %v, want ok %v", c.paths, err, c.ok)
			}
		})
	}
}

// FuzzInputPath puts whatever a job accepts as two inputs on a real file
// system, the first as a link out of the folder: the worst that the bytes
// under that name could become. Neither name may lead out.
func FuzzInputPath(f *testing.F) {
	for _, p := range []string{"a", "/a", "../a", "a/../../b", "a\x00b", "", ".", "..", `..\a`, "a//b", "proc/self/root", "\u2024\u2024/a", "\xc0\xaf", strings.Repeat("a", 300)} {
		f.Add(p, p+"/passwd")
		f.Add("link", p)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		j := draft()
		j.Inputs[0].Path, j.Inputs[1].Path = first, second
		if _, err := Seal(j); err != nil {
			return
		}
		for _, p := range []string{first, second} {
			joined := filepath.Join(InputsPath, p)
			if joined != InputsPath+"/"+p || !filepath.IsLocal(p) {
				t.Fatalf("%q leads to %q", p, joined)
			}
		}

		base := t.TempDir()
		inputs, outside := filepath.Join(base, "inputs"), filepath.Join(base, "outside")
		place(t, filepath.Join(inputs, first), func(name string) error { return os.Symlink(outside, name) })
		place(t, outside+"/passwd", func(name string) error { return os.WriteFile(name, nil, 0o600) })
		place(t, filepath.Join(inputs, second), func(name string) error { return os.WriteFile(name, nil, 0o600) })
		real, err := filepath.EvalSymlinks(filepath.Join(inputs, second))
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(inputs, second); real != want {
			t.Fatalf("%q beside %q is really %q", second, first, real)
		}
	})
}

// place makes one file and the folders above it.
func place(t *testing.T, name string, create func(string) error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := create(name); err != nil {
		t.Fatal(err)
	}
}
