//go:build privileged

package suites

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What the runner laid out as root's is the job's own in the open folder, and
// nowhere else.
func TestOpenInputs(t *testing.T) {
	inputs := t.TempDir()
	if err := os.Mkdir(filepath.Join(inputs, openFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range outsideInputs() {
		if err := os.WriteFile(filepath.Join(inputs, p), nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := newSitting(cellNamed(t, "outside"), fakeScene(), nil, nil).openInputs(inputs); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]struct{ uid, mode uint32 }{
		"submission.txt": {0, 0o444}, openFolder: {0, 0o777}, openFolder + "/file": {nobody, 0o666}, openFolder + "/chmod": {nobody, 0o666},
	} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(inputs, p), &st); err != nil || st.Uid != want.uid || st.Mode&0o7777 != want.mode {
			t.Errorf("%s: uid %d mode %04o, %v", p, st.Uid, st.Mode&0o7777, err)
		}
	}
}
