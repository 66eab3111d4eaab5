package filedigest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox/evidence"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// settle waits until the file's last change is old enough to be remembered.
func settle(t *testing.T, file string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := look(f)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.settled(time.Now()) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s never settles", file)
		}
	}
}

func TestAnUnchangedFileIsReadOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runsc")
	write(t, file, "one")
	settle(t, file)
	var c Cache
	for range 5 {
		if got, err := c.Digest(file); err != nil || got != evidence.Digest([]byte("one")) {
			t.Fatalf("%s, %v", got, err)
		}
	}
	if c.Reads() != 1 {
		t.Errorf("%d reads of an unchanged file", c.Reads())
	}
}

// The same length and the same dates, as a careful intruder leaves it; and
// another file under the name.
func TestAChangedFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runsc")
	write(t, file, "one")
	settle(t, file)
	var c Cache
	if _, err := c.Digest(file); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "two")
	if err := os.Chtimes(file, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Digest(file); err != nil || got != evidence.Digest([]byte("two")) {
		t.Errorf("written again: %s, %v", got, err)
	}
	write(t, file+".new", "six")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Digest(file); err != nil || got != evidence.Digest([]byte("six")) {
		t.Errorf("replaced: %s, %v", got, err)
	}
	if len(c.known) > 1 {
		t.Errorf("%d entries for one path", len(c.known))
	}
}

// A file that has changed just now may change again within the same tick of the
// kernel's clock, which leaves all marks alike: it is not remembered yet.
func TestAFreshFileIsNotRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runsc")
	write(t, file, "one")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := look(f)
	if err != nil {
		t.Fatal(err)
	}
	changed := time.Unix(m.ctime.Unix())
	for after, want := range map[time.Duration]bool{0: false, unsettled / 2: false, unsettled: true, -time.Hour: true, time.Hour: true} {
		if got := m.settled(changed.Add(after)); got != want {
			t.Errorf("%s after its change settled is %t", after, got)
		}
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var c Cache
	for path, want := range map[string]string{
		dir: "not a regular file", pipe: "not a regular file", "/dev/null": "not a regular file", dir + "/absent": "no such file",
	} {
		if d, err := c.Digest(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", path, d, err)
		}
	}
}
