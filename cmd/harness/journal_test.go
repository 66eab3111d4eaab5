package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Each line bears its priority, where standard error is the journal, and only
// there.
func TestLinesInTheJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	said := func(stream string) string {
		t.Helper()
		t.Setenv("JOURNAL_STREAM", stream)
		if err := f.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		l := logger(f)
		l.Info("one")
		l.With("run", "r").Warn("two")
		l.WithGroup("g").Error("three", "a", 1)
		l.Debug("not told")
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	lines := strings.Split(strings.TrimSpace(said(fmt.Sprintf("%d:%d", sys.Dev, sys.Ino))), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], `<6>{"time":`) || !strings.HasPrefix(lines[1], `<4>{"time":`) || !strings.HasPrefix(lines[2], `<3>{"time":`) ||
		!strings.Contains(lines[1], `"run":"r"`) || !strings.Contains(lines[2], `"g":{"a":1}`) {
		t.Errorf("said %q", lines)
	}
	for _, stream := range []string{"", "1:2", fmt.Sprintf("%d:%d", sys.Dev, sys.Ino+1)} {
		if s := said(stream); strings.Contains(s, "<") || strings.Count(s, "\n") != 3 {
			t.Errorf("%q: said %q", stream, s)
		}
	}
}
