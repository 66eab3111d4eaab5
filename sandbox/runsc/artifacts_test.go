package runsc

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// scratchOf is a scratch folder as a hostile job leaves it, beside a secret
// that is not the job's.
func scratchOf(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	scratch := filepath.Join(base, "scratch")
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(scratch, name) }
	ok(os.MkdirAll(at("dir/deep"), 0o700))
	for name, size := range map[string]int{"empty": 0, "five": 5, "six": 6, "dir/five": 5, "dir/deep/five": 5} {
		ok(os.WriteFile(at(name), bytes.Repeat([]byte("x"), size), 0o600))
	}
	ok(os.WriteFile(filepath.Join(base, "secret"), []byte("s"), 0o600))
	ok(os.Symlink("five", at("link")))
	ok(os.Symlink(filepath.Join(base, "secret"), at("link-out")))
	ok(os.Symlink("dir", at("dirlink")))
	ok(os.Symlink("..", at("up")))
	ok(os.Symlink("/proc/self/environ", at("magic")))
	ok(os.Symlink("loop", at("loop")))
	ok(syscall.Mkfifo(at("fifo"), 0o600))
	sparse, err := os.Create(at("sparse"))
	ok(err)
	ok(sparse.Truncate(1 << 40))
	ok(sparse.Close())
	return scratch
}

func TestReadOutput(t *testing.T) {
	scratch := scratchOf(t)
	for _, c := range []struct {
		name string
		want int    // bytes; -1: refused
		says string // in the error
	}{
		{"five", 5, ""},
		{"empty", 0, ""},
		{"dir/five", 5, ""},
		{"dir/deep/../five", 5, ""},
		{"/five", 5, ""}, // below scratch, and never the host's root
		{"six", -1, "6 bytes, beyond its cap of 5"},
		{"sparse", -1, "beyond its cap of 5"},
		{"absent", -1, "no such file"},
		{"dir/absent/five", -1, "no such file"},
		{"five/five", -1, "not a directory"},
		{"dir", -1, "not a regular file"},
		{"", -1, ""},
		{".", -1, ""},
		{"fifo", -1, "not a regular file"}, // and does not wait for a writer
		{"link", -1, "a link"},
		{"link-out", -1, "a link"},
		{"dirlink/five", -1, "a link"},
		{"up/secret", -1, "a link"},
		{"magic", -1, "a link"},
		{"loop", -1, "a link"},
		{"../secret", -1, "no such file"}, // scratch/secret
		{"../../../../../../etc/hostname", -1, "no such file"},
		{"/etc/hostname", -1, "no such file"},
		{"five\x00", -1, ""},
	} {
		data, err := readOutput(scratch, c.name, 5)
		switch {
		case c.want < 0 && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q: %q, %v, want an error with %q", c.name, data, err, c.says)
		case c.want >= 0 && (err != nil || len(data) != c.want):
			t.Errorf("%q: %q, %v, want %d bytes", c.name, data, err, c.want)
		}
	}
	if _, err := readOutput(filepath.Join(scratch, "absent"), "five", 5); err == nil {
		t.Error("scratch that is not there is read")
	}
}

// Real places of the host stand in for what a job without root cannot make.
func TestReadOutputRefusesOtherMountsAndDevices(t *testing.T) {
	if data, err := readOutput("/dev", "null", 5); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %q, %v", data, err)
	}
	if data, err := readOutput("/", "proc/version", 1<<10); err == nil || !strings.Contains(err.Error(), "cross-device") {
		t.Errorf("a file of another mount: %q, %v", data, err)
	}
	// Its size reads as 0 and its bytes are many.
	if data, err := readOutput("/proc", "version", 5); err == nil || !strings.Contains(err.Error(), "beyond its cap of 5") {
		t.Errorf("a file that holds more than it says: %q, %v", data, err)
	}
}
