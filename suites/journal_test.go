package suites

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tenwalls.dev/harness/internal/cgroup"
)

func write(t *testing.T, name, words string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
}

func there(name string) bool { _, err := os.Lstat(name); return err == nil }

// hierarchy is a cgroup tree that is nothing but folders.
func hierarchy(t *testing.T) (*cgroup.Hierarchy, string) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "cgroup.controllers"), "memory pids\n")
	h, err := cgroup.Detect(root)
	if err != nil {
		t.Fatal(err)
	}
	return h, root
}

func TestJournalIsReadBack(t *testing.T) {
	dir := t.TempDir()
	j, err := newJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []entry{{"cgroup", "/tenwalls/run_1"}, {"mount", "/state/a b\n\"c"}, {"netns", ""}}
	for i, e := range want {
		if err := j.Record(e.Kind, e.What); err != nil {
			t.Fatal(err)
		}
		// Each is on the disk before the thing is made.
		if got, err := readJournal(dir); err != nil || !reflect.DeepEqual(got, want[:i+1]) {
			t.Errorf("%v, %v; want %v", got, err, want[:i+1])
		}
	}
	if _, err := newJournal(dir); err == nil {
		t.Error("two runs share one journal")
	}
	if err := j.f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Record("folder", "/x"); err == nil {
		t.Error("what could not be noted was not told")
	}
}

func TestReadJournal(t *testing.T) {
	const one = `{"kind":"cgroup","what":"/tenwalls/run_1"}` + "\n"
	for name, tt := range map[string]struct {
		words string
		want  int
	}{
		"empty":                {"", 0},
		"one":                  {one, 1},
		"last line cut short":  {one + one[:20], 1},
		"no newline at end":    {one + strings.TrimSuffix(one, "\n"), 2},
		"nothing but cut":      {one[:5], 0},
		"zeroes after a crash": {one + strings.Repeat("\x00", 100), 1},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "journal"), tt.words)
		if got, err := readJournal(dir); err != nil || len(got) != tt.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := readJournal(t.TempDir()); err != nil || got != nil {
		t.Errorf("no journal: %v, %v", got, err)
	}
}

// A journal that was not read to its end does not say what there is to remove.
func TestReadJournalFails(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "journal", "is a folder"), "")
	if got, err := readJournal(dir); err == nil {
		t.Errorf("a journal that cannot be read is %v", got)
	}
	h, _ := hierarchy(t)
	if err := sweepRun(dir, h); err == nil || !there(dir) {
		t.Errorf("swept by a journal that cannot be read: %v", err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "journal"), strings.Repeat("x", 1<<20)+"\n"+`{"kind":"cgroup","what":"/tenwalls/run_1"}`+"\n")
	if got, err := readJournal(dir); err == nil && len(got) != 1 {
		t.Errorf("what stands behind an endless line is passed over: %v", got)
	}
}

func TestSweepRun(t *testing.T) {
	h, root := hierarchy(t)
	t.Run("no journal", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run_1")
		write(t, filepath.Join(dir, "image", "deep", "file"), "x")
		if err := sweepRun(dir, h); err != nil || there(dir) {
			t.Errorf("%v, still there: %t", err, there(dir))
		}
	})
	t.Run("a group that is gone", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run_1")
		write(t, filepath.Join(dir, "journal"), `{"kind":"cgroup","what":"/tenwalls/gone"}`+"\n"+`{"kind":"folder","what":"/etc"}`+"\n")
		if err := sweepRun(dir, h); err != nil || there(dir) || !there("/etc") {
			t.Errorf("%v, still there: %t", err, there(dir))
		}
	})
	t.Run("a group that is there", func(t *testing.T) {
		dir, group := filepath.Join(t.TempDir(), "run_1"), filepath.Join(root, "tenwalls", "run_1")
		other := filepath.Join(root, "tenwalls", "run_2")
		for _, d := range []string{filepath.Join(group, "helpers"), other} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, "journal"), `{"kind":"cgroup","what":"/tenwalls/run_1"}`+"\n"+`{"kind":"netns","what":"/tenwalls/run_2"}`+"\n")
		if err := sweepRun(dir, h); err != nil || there(dir) || there(group) || !there(other) {
			t.Errorf("%v; folder %t, group %t, somebody else's group %t", err, there(dir), there(group), there(other))
		}
	})
	t.Run("a group that cannot be had", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run_1")
		write(t, filepath.Join(dir, "journal"), `{"kind":"cgroup","what":"../../etc"}`+"\n")
		if err := sweepRun(dir, h); err == nil || !there(filepath.Join(dir, "journal")) {
			t.Errorf("%v: the journal has to stay for the next sweep", err)
		}
	})
	t.Run("nothing there", func(t *testing.T) {
		if err := sweepRun(filepath.Join(t.TempDir(), "run_1"), h); err != nil {
			t.Error(err)
		}
	})
}

func TestOpenWorkshop(t *testing.T) {
	h, _ := hierarchy(t)
	state := t.TempDir()
	left := filepath.Join(state, "harness", "runs", "run_left")
	write(t, filepath.Join(left, "image", "file"), "x")
	foreign := filepath.Join(state, "jobs", "job_1")
	write(t, filepath.Join(foreign, "file"), "x")
	w, err := openWorkshop(state, h)
	if err != nil {
		t.Fatal(err)
	}
	if there(left) || !there(foreign) {
		t.Errorf("an earlier run's folder there: %t; the runner's own: %t", there(left), there(foreign))
	}
	if _, err := openWorkshop(state, h); err == nil || !strings.Contains(err.Error(), "another harness") {
		t.Errorf("two harnesses in one folder: %v", err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(left, "journal"), `{"kind":"cgroup","what":"relative"}`+"\n")
	if _, err := openWorkshop(state, h); err == nil || !there(left) {
		t.Errorf("what could not be removed was passed over: %v", err)
	}
	// The failure left the folder free for the next.
	if err := os.Remove(filepath.Join(left, "journal")); err != nil {
		t.Fatal(err)
	}
	if w, err = openWorkshop(state, h); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}
