package observers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// plantTree makes a tree with one entry of each type that needs no root.
func plantTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(root, "folder"), 0o755),
		os.WriteFile(filepath.Join(root, "folder/file"), []byte("content"), 0o644),
		os.WriteFile(filepath.Join(root, "folder.txt"), []byte("sorts between"), 0o644),
		os.Symlink("folder/file", filepath.Join(root, "link")),
		os.Symlink("/nowhere", filepath.Join(root, "dangling")),
		unix.Mkfifo(filepath.Join(root, "fifo"), 0o600),
		unix.Setxattr(filepath.Join(root, "folder"), "user.planted", []byte("0"), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTreeDigestOfCopiesIsEqual(t *testing.T) {
	first, entries, err := TreeDigest(plantTree(t))
	if err != nil || entries != 7 {
		t.Fatalf("got %d entries, %v", entries, err)
	}
	if second, _, err := TreeDigest(plantTree(t)); err != nil || first != second {
		t.Errorf("two like trees: %s and %s, %v", first, second, err)
	}
}

// treeChanges holds one change of each thing that counts.
var treeChanges = map[string]struct {
	change func(root string) error
	found  string
}{
	"content":     {func(r string) error { return os.WriteFile(r+"/folder/file", []byte("Content"), 0o644) }, "changed at folder/file"},
	"size":        {func(r string) error { return os.Truncate(r+"/folder/file", 8) }, "changed at folder/file"},
	"mode":        {func(r string) error { return os.Chmod(r+"/folder/file", 0o640) }, "changed at folder/file"},
	"root's mode": {func(r string) error { return os.Chmod(r, 0o700) }, "changed at ."},
	"attribute": {func(r string) error {
		return unix.Setxattr(r+"/folder/file", "user.tenwalls", []byte("1"), 0)
	}, "changed at folder/file"},
	"attribute's value": {func(r string) error {
		return unix.Setxattr(r+"/folder", "user.planted", []byte("1"), 0)
	}, "changed at folder"},
	"link target": {func(r string) error {
		return replace(r+"/link", func(p string) error { return os.Symlink("folder/File", p) })
	}, "changed at link"},
	"type": {func(r string) error {
		return replace(r+"/fifo", func(p string) error { return os.WriteFile(p, nil, 0o600) })
	}, "changed at fifo"},
	"name": {func(r string) error { return os.Rename(r+"/link", r+"/lonk") }, "added at lonk"},
	"new":  {func(r string) error { return os.Mkdir(r+"/folder/another", 0o755) }, "added at folder/another"},
	"last": {func(r string) error { return os.Mkdir(r+"/zzz", 0o755) }, "added at zzz"},
	"gone": {func(r string) error { return os.Remove(r + "/link") }, "removed at link"},
}

func replace(path string, with func(string) error) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return with(path)
}

func TestAnyChangeOfATreeIsSeen(t *testing.T) {
	for name, test := range treeChanges {
		t.Run(name, func(t *testing.T) {
			root, trees := plantTree(t), &Trees{}
			before, _, err := TreeDigest(root)
			if err != nil {
				t.Fatal(err)
			}
			if err := trees.Before(context.Background(), []string{root}); err != nil {
				t.Fatal(err)
			}
			if seen := trees.After(context.Background()); seen.Lost != "" || len(seen.Found) != 0 || seen.Values["changed"].Worst != 0 {
				t.Errorf("an unchanged tree: %+v", seen)
			}
			if err := test.change(root); err != nil {
				t.Fatal(err)
			}
			if after, _, err := TreeDigest(root); err != nil || after == before {
				t.Errorf("the digest did not change, %v", err)
			}
			seen := trees.After(context.Background())
			if seen.Values["changed"].Worst != 1 || len(seen.Found) != 1 || !strings.HasSuffix(seen.Found[0], test.found) {
				t.Errorf("got %+v, want %q", seen, test.found)
			}
		})
	}
}

func TestTreesWithoutBeforeAreLost(t *testing.T) {
	if seen := (&Trees{}).After(context.Background()); seen.Lost == "" {
		t.Errorf("got %+v", seen)
	}
}

// The inputs of a job are read when they are laid out and again when the job is
// at its end, and are gone when the run's trees are read.
func TestTreesOfAJob(t *testing.T) {
	for name, test := range treeChanges {
		t.Run(name, func(t *testing.T) {
			image, inputs, trees := plantTree(t), plantTree(t), &Trees{}
			if err := trees.Before(context.Background(), []string{image}); err != nil {
				t.Fatal(err)
			}
			watch, err := trees.Watch(context.Background(), Subject{Place: "p", Inputs: inputs})
			if err != nil {
				t.Fatal(err)
			}
			watch.Sample()
			if err := test.change(inputs); err != nil {
				t.Fatal(err)
			}
			watch.Ended()
			if err := os.RemoveAll(inputs); err != nil {
				t.Fatal(err)
			}
			seen := JoinTrees(trees.After(context.Background()), watch.Stored())
			if seen.Lost != "" || seen.Samples != 1 || seen.Place != "p" || seen.Observer != "trees" {
				t.Errorf("got %+v", seen)
			}
			if v := seen.Values; v["changed"].After != 1 || v["image"].After != 1 || v["inputs"].After != 1 || v["entries"].Before != 14 {
				t.Errorf("got %+v", v)
			}
			if len(seen.Found) != 1 || seen.Found[0] != "tree "+inputs+": "+test.found {
				t.Errorf("found %q, want %q", seen.Found, test.found)
			}
		})
	}
}

// Whatever of the two was not read, the observation is lost.
func TestTreesOfAJobAreLost(t *testing.T) {
	watched := func(root string, ended bool) Observation {
		watch, err := (&Trees{}).Watch(context.Background(), Subject{Inputs: root})
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			watch.Ended()
		}
		return watch.Stored()
	}
	run := Observation{Observer: "trees", Samples: 1}
	if seen := JoinTrees(run, watched(plantTree(t), true)); seen.Lost != "" || seen.Samples != 1 {
		t.Errorf("both were read: %+v", seen)
	}
	if seen := JoinTrees(run, watched(plantTree(t), false)); seen.Lost == "" || seen.Samples != 0 {
		t.Errorf("never read again: %+v", seen)
	}
	if seen := JoinTrees(Observation{Lost: "no image"}, watched(plantTree(t), true)); seen.Lost != "no image" || seen.Samples != 0 {
		t.Errorf("no image: %+v", seen)
	}
	if watch, err := (&Trees{}).Watch(context.Background(), Subject{Inputs: "/does/not/exist"}); err == nil {
		t.Errorf("inputs that are not there: %+v", watch)
	}
	if watch, err := (&Trees{}).Watch(context.Background(), Subject{}); watch != nil || err != nil {
		t.Errorf("a job without inputs: %+v, %v", watch, err)
	}
}

func TestTreesControl(t *testing.T) {
	if control := (&Trees{}).Control(context.Background()); !control.Passed {
		t.Errorf("%+v", control)
	}
}

func TestTreeOfAMissingRootIsAnError(t *testing.T) {
	if _, _, err := TreeDigest(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error")
	}
}
