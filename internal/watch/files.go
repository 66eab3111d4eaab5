package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// Files tells that something that is watched may have changed.
type Files interface {
	// Watch replaces what is watched. touched says that something below a tree may
	// have changed since the last call, or that a tree is another one. An error says
	// what goes unwatched.
	Watch(Watched) (touched bool, err error)
	// Changed receives once for any number of changes since it was last read.
	Changed() <-chan struct{}
	// Close ends the watch and its goroutine.
	Close() error
}

// Watched is what may change: each path itself, and everything below each tree.
// What is not there is watched for where it would be.
type Watched struct{ Paths, Trees []string }

// maxLinks is how many symlinks one path may lead through, as in the kernel
// (path_resolution(7)).
const maxLinks = 40

// maxFolders bounds the folders of a base image that are watched, each of which
// takes about a kilobyte of the kernel's.
const maxFolders = 16384

// folders are Files over inotify(7) and the mount table. A file's own watch is
// dead after the first atomic rename, so what is watched is each folder on the
// way to the file, through every symlink, for the one name that matters in it;
// and every folder of a tree, for all names. The file itself is watched beside
// them, because a write through another hard link or another mount of it is no
// event of the folder.
type folders struct {
	w       *fsnotify.Watcher
	mounts  *mounts
	names   chan map[string]map[string]bool // what is watched now: folder, then names in it; nil: all
	changed chan struct{}
	touched atomic.Bool // something below a tree, since the last call of Watch
	done    chan struct{}

	// Of the caller of Watch alone.
	trees   []string   // as they were asked for
	roots   []rootMark // where they led to
	folders []string   // all folders in them
	cut     error      // why that is not all
}

// rootMark tells one tree from another under the same name.
type rootMark struct {
	path     string
	dev, ino uint64
}

func markRoot(path string) (m rootMark) {
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return rootMark{}
	}
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return rootMark{}
	}
	return rootMark{root, uint64(st.Dev), st.Ino}
}

// OpenFiles starts a watch over nothing yet but the mount table.
func OpenFiles() (Files, error) {
	f, err := openFolders()
	if err != nil {
		return nil, err
	}
	if f.mounts, err = watchMounts(f.tell); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openFolders is OpenFiles without the mount table.
func openFolders() (*folders, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch folders: %w: raise fs.inotify.max_user_instances; until then a change is seen at the next tick", err)
	}
	f := &folders{w: w, names: make(chan map[string]map[string]bool), changed: make(chan struct{}, 1), done: make(chan struct{})}
	go f.listen()
	return f, nil
}

func (f *folders) Changed() <-chan struct{} { return f.changed }

func (f *folders) Close() error {
	err := f.w.Close()
	if f.mounts != nil {
		err = errors.Join(err, f.mounts.Close())
	}
	<-f.done
	return err
}

// listen ends when the watcher is closed, which closes both of its channels.
func (f *folders) listen() {
	defer close(f.done)
	var names map[string]map[string]bool
	for {
		select {
		case n := <-f.names:
			names = n
		case e, ok := <-f.w.Events:
			if !ok {
				return
			}
			in, watched := names[filepath.Dir(e.Name)]
			if watched && in == nil {
				f.touched.Store(true)
			}
			if watched && (in == nil || in[filepath.Base(e.Name)]) {
				f.tell()
			}
		case _, ok := <-f.w.Errors:
			if !ok {
				return
			}
			f.touched.Store(true)
			f.tell() // the queue ran over, so anything may have changed
		}
	}
}

func (f *folders) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *folders) Watch(what Watched) (touched bool, err error) {
	touched = f.touched.Swap(false) // before they are walked: what is made in between is an event
	var roots []rootMark
	for _, p := range what.Trees {
		roots = append(roots, markRoot(p))
	}
	if touched = touched || !slices.Equal(what.Trees, f.trees) || !slices.Equal(roots, f.roots); touched {
		f.trees, f.roots = slices.Clone(what.Trees), roots
		f.folders, f.cut = nil, nil
		for _, p := range what.Trees {
			f.tree(p)
		}
	}
	want := map[string]map[string]bool{}
	var ends []string
	for _, p := range slices.Concat(what.Paths, what.Trees) {
		if end := way(p, want); isFile(end) {
			ends = append(ends, end)
		}
	}
	on := slices.AppendSeq(slices.Clone(ends), maps.Keys(want))
	for _, dir := range f.folders {
		want[dir] = nil
	}
	select {
	case f.names <- want: // before the watches: an event in between is not lost
	case <-f.done:
		return touched, errors.New("watch folders: closed")
	}
	for _, dir := range f.w.WatchList() {
		if _, ok := want[dir]; !ok && !slices.Contains(ends, dir) {
			// A folder that is gone has lost its watch already.
			if err := f.w.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
				return touched, fmt.Errorf("watch folders: %w", err)
			}
		}
	}
	if touched { // else nothing has happened in those of a tree
		f.cut = errors.Join(f.cut, f.add(f.folders))
	}
	return touched, errors.Join(f.add(on), f.cut)
}

// add watches all of them. Its error names the first that cannot be.
func (f *folders) add(paths []string) error {
	var errs []error
	for _, path := range paths {
		if err := f.w.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("watch %s: %w", path, err))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w (and %d others like it): a change there is seen at the next tick; raise fs.inotify.max_user_watches", errs[0], len(errs)-1)
	}
	return nil
}

// way adds every folder that path leads through, with the names that it looks
// up there: each link of a chain can be swapped, and each folder renamed. It
// returns where path leads to.
func way(path string, into map[string]map[string]bool) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // the configuration may have been named from where the daemon was started
	}
	done, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		if names, ok := into[done]; !ok {
			into[done] = map[string]bool{part: true}
		} else if names != nil {
			names[part] = true
		}
		next := filepath.Join(done, part)
		target, err := os.Readlink(next)
		if err != nil {
			done = next // no link, or nothing there
			continue
		}
		if links++; links > maxLinks {
			return done
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done
}

// tree adds every folder below path, path among them.
func (f *folders) tree(path string) {
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	_ = filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error { // what cannot be read is seen at the tick
		if err != nil {
			return nil //nolint:nilerr // the rest is still worth watching
		}
		if !d.IsDir() {
			return nil
		}
		if len(f.folders) == maxFolders {
			f.cut = fmt.Errorf("%s holds more than %d folders, and a change in the others is seen when it is walked again", path, maxFolders)
			return fs.SkipAll
		}
		f.folders = append(f.folders, dir)
		return nil
	})
}
