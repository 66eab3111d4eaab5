package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// seen waits for an event; events of before are taken first by drain.
func seen(t *testing.T, f Files) bool {
	t.Helper()
	select {
	case <-f.Changed():
		return true
	case <-time.After(5 * time.Second):
		return false
	}
}

// silent says whether nothing comes. There is no event for that: another change,
// which is watched, is made after it, and has to be the first that is seen.
func drain(f Files) {
	for {
		select {
		case <-f.Changed():
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Every way in which deployment tools and editors change a file.
func TestEveryWayOfChangingAFileIsSeen(t *testing.T) {
	cases := map[string]func(t *testing.T, dir string){
		"written in place": func(t *testing.T, dir string) { write(t, dir+"/v1/runsc", "two") },
		"atomic rename": func(t *testing.T, dir string) {
			write(t, dir+"/v1/.runsc.tmp", "two")
			must(t, os.Rename(dir+"/v1/.runsc.tmp", dir+"/v1/runsc"))
		},
		"from another folder": func(t *testing.T, dir string) { must(t, os.Rename(dir+"/v2/runsc", dir+"/v1/runsc")) },
		"symlink swap": func(t *testing.T, dir string) {
			must(t, os.Symlink("v2", dir+"/.current"))
			must(t, os.Rename(dir+"/.current", dir+"/current"))
		},
		"link of a link": func(t *testing.T, dir string) {
			must(t, os.Remove(dir+"/runsc"))
			must(t, os.Symlink("v2/runsc", dir+"/runsc"))
		},
		"removed": func(t *testing.T, dir string) { must(t, os.Remove(dir+"/v1/runsc")) },
		"folder renamed": func(t *testing.T, dir string) {
			must(t, os.Rename(dir+"/v1", dir+"/old"))
			must(t, os.Rename(dir+"/v2", dir+"/v1"))
		},
		"through another hard link": func(t *testing.T, dir string) {
			must(t, os.Link(dir+"/v1/runsc", dir+"/v2/link"))
			write(t, dir+"/v2/link", "two")
		},
		"backup first, as editors do": func(t *testing.T, dir string) {
			must(t, os.Rename(dir+"/v1/runsc", dir+"/v1/runsc~"))
			write(t, dir+"/v1/runsc", "two")
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := openFolders() // others may mount beside us
			must(t, err)
			t.Cleanup(func() { must(t, f.Close()) })
			dir := t.TempDir()
			must(t, os.Mkdir(dir+"/v1", 0o755))
			must(t, os.Mkdir(dir+"/v2", 0o755))
			write(t, dir+"/v1/runsc", "one")
			write(t, dir+"/v2/runsc", "other")
			must(t, os.Symlink("v1", dir+"/current"))
			must(t, os.Symlink("current/runsc", dir+"/runsc"))
			watched := Watched{Paths: []string{dir + "/runsc"}}
			watchNow(t, f, watched)
			drain(f)
			write(t, dir+"/v1/other", "not ours")
			write(t, dir+"/v2/other", "not ours")
			change(t, dir)
			if !seen(t, f) {
				t.Fatal("not seen")
			}
			watchNow(t, f, watched) // as the daemon does at each look
			drain(f)
			write(t, dir+"/v1/runsc", "three") // what is there now is watched as well
			if target, err := filepath.EvalSymlinks(dir + "/runsc"); err == nil && filepath.Base(filepath.Dir(target)) == "v2" {
				write(t, target, "three")
			}
			if !seen(t, f) {
				t.Error("a further change is not seen")
			}
		})
	}
}

// A neighbour in the same folder wakes nobody.
func TestOtherNamesAreNotSeen(t *testing.T) {
	f, err := openFolders() // others may mount beside us
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	dir := t.TempDir()
	write(t, dir+"/runsc", "one")
	watchNow(t, f, Watched{Paths: []string{dir + "/runsc"}})
	drain(f)
	for range 100 {
		write(t, dir+"/other", "x")
	}
	if len(f.Changed()) > 0 {
		t.Error("a neighbour's change is seen")
	}
	// Events come in order: this one stands behind all of those.
	write(t, dir+"/runsc", "two")
	if !seen(t, f) {
		t.Error("not seen")
	}
}

// The configuration may be named from the folder in which the daemon was started.
func TestARelativePathIsWatched(t *testing.T) {
	t.Chdir(t.TempDir())
	f, err := openFolders()
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	write(t, "harness.yaml", "one")
	watchNow(t, f, Watched{Paths: []string{"harness.yaml"}})
	drain(f)
	write(t, "harness.yaml", "two")
	if !seen(t, f) {
		t.Error("not seen")
	}
}

// Everything below a tree counts, folders made later too, once they were looked
// at.
func TestATreeIsWatched(t *testing.T) {
	f, err := openFolders() // others may mount beside us
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/rootfs/usr/bin", 0o755))
	watched := Watched{Trees: []string{dir + "/rootfs"}}
	if !watchNow(t, f, watched) || watchNow(t, f, watched) {
		t.Error("touched: want it for a tree that is new, and then no more")
	}
	drain(f)
	write(t, dir+"/rootfs/usr/bin/new", "x")
	if !seen(t, f) {
		t.Error("deep in the tree: not seen")
	}
	waitFor(t, "touched", func() bool { return watchNow(t, f, watched) })
	drain(f)
	must(t, os.Mkdir(dir+"/rootfs/opt", 0o755))
	if !seen(t, f) {
		t.Error("a new folder: not seen")
	}
	waitFor(t, "touched by the new folder", func() bool { return watchNow(t, f, watched) })
	drain(f)
	write(t, dir+"/rootfs/opt/x", "x")
	if !seen(t, f) {
		t.Error("in the new folder: not seen")
	}
}

// A tree that is another one under the same name is touched, and watched.
func TestAnotherTreeIsTouched(t *testing.T) {
	f, err := openFolders()
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/rootfs/usr", 0o755))
	must(t, os.MkdirAll(dir+"/next/usr", 0o755))
	watched := Watched{Paths: []string{dir + "/runsc"}, Trees: []string{dir + "/rootfs"}}
	watchNow(t, f, watched)
	write(t, dir+"/runsc", "x") // no tree
	if !seen(t, f) || watchNow(t, f, watched) {
		t.Error("a file beside the tree is told as one of it")
	}
	must(t, os.Rename(dir+"/rootfs", dir+"/last"))
	must(t, os.Rename(dir+"/next", dir+"/rootfs"))
	if !watchNow(t, f, watched) {
		t.Error("another tree, and it is not touched")
	}
	drain(f)
	write(t, dir+"/rootfs/usr/x", "x")
	if !seen(t, f) {
		t.Error("not watched")
	}
}

// What is not there yet is seen when it comes.
func TestWhatIsAbsentIsSeenWhenItComes(t *testing.T) {
	f, err := openFolders() // others may mount beside us
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	dir := t.TempDir()
	watched := Watched{Paths: []string{dir + "/a/b/runsc"}}
	watchNow(t, f, watched)
	drain(f)
	must(t, os.MkdirAll(dir+"/a/b", 0o755))
	if !seen(t, f) {
		t.Fatal("the first folder on the way is not seen")
	}
	watchNow(t, f, watched)
	drain(f)
	write(t, dir+"/a/b/runsc", "x")
	if !seen(t, f) {
		t.Error("the file is not seen")
	}
}

// watchNow sets the watch and fails the test where something goes unwatched.
func watchNow(t *testing.T, f Files, w Watched) (touched bool) {
	t.Helper()
	touched, err := f.Watch(w)
	must(t, err)
	return touched
}
