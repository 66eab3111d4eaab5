package bounded

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Whoever waits for a named pipe waits for its other end.
func TestReadWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, make([]byte, 11), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", dir, long, filepath.Join(dir, "none")} {
		if data, err := Read(path, 10); err == nil {
			t.Errorf("%s: %d bytes", path, len(data))
		}
	}
	if data, err := Read(long, 11); err != nil || len(data) != 11 {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}
