//go:build privileged

package unmount

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ground is a folder to remove, beside one with a file that is somebody else's.
// What is left mounted in either is taken away at the end, whatever failed.
type ground struct {
	t           *testing.T
	dir, theirs string
}

func newGround(t *testing.T) ground {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the privileged tests need root")
	}
	base := t.TempDir()
	g := ground{t: t, dir: filepath.Join(base, "dir"), theirs: filepath.Join(base, "theirs")}
	write(t, filepath.Join(g.theirs, "file"))
	write(t, filepath.Join(g.dir, "plain", "file"))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := Below(ctx, base); err != nil {
			t.Error(err)
		}
	})
	return g
}

// soon is a context that ends long after anything here should have.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// mount mounts a tmpfs, or source over it when there is one, at name in dir.
func (g ground) mount(source, name string) string {
	g.t.Helper()
	at := filepath.Join(g.dir, name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		g.t.Fatal(err)
	}
	g.mountAt(source, at)
	return at
}

func (g ground) mountAt(source, at string) {
	g.t.Helper()
	kind, flags := "tmpfs", uintptr(0)
	if source != "" {
		kind, flags = "", unix.MS_BIND
	}
	if err := unix.Mount(source, at, kind, flags, ""); err != nil {
		g.t.Fatalf("mount at %s: %v", at, err)
	}
}

// mounted tells whether anything is mounted at or below the folder.
func (g ground) mounted() bool {
	g.t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		g.t.Fatal(err)
	}
	return strings.Contains(string(data), " "+g.dir+"/") || strings.Contains(string(data), " "+g.dir+" ")
}

// gone checks that the folder is removed, and only that.
func (g ground) gone() {
	g.t.Helper()
	if there(g.dir) || g.mounted() {
		g.t.Errorf("folder there: %t, mounted: %t", there(g.dir), g.mounted())
	}
	g.intact()
}

func (g ground) intact() {
	g.t.Helper()
	if data, err := os.ReadFile(filepath.Join(g.theirs, "file")); err != nil || string(data) != "bytes" {
		g.t.Errorf("somebody else's file: %q, %v", data, err)
	}
}

func TestNestedMounts(t *testing.T) {
	g := newGround(t)
	g.mount("", "a")
	g.mount("", "a/b")
	g.mount(g.theirs, "a/b/theirs")
	g.mount("", "twice")
	g.mount("", "twice")                  // one over the other
	g.mount("", "covered/below")          // and then out of reach
	g.mount("", "covered")                //
	g.mount(g.theirs, "a name\nwith\tit") // as mountinfo escapes it
	netns := filepath.Join(g.dir, "file")
	write(t, netns)
	g.mountAt("/proc/self/ns/net", netns) // a mount point that is a file
	if err := Below(soon(t), g.dir); err != nil || g.mounted() || !there(filepath.Join(g.dir, "plain", "file")) {
		t.Errorf("below: %v, mounted: %t", err, g.mounted())
	}
	g.mount(g.theirs, "again")
	g.mountAt("", g.dir) // and the folder itself
	if err := Remove(soon(t), g.dir); err != nil {
		t.Error(err)
	}
	g.gone()
}

// A sibling whose name begins the same is another folder.
func TestSiblingIsLeftAlone(t *testing.T) {
	g := newGround(t)
	sibling := ground{t, g.dir + "2", g.theirs}
	at := sibling.mount(g.theirs, "theirs")
	if err := Remove(soon(t), g.dir); err != nil {
		t.Error(err)
	}
	g.gone()
	if !sibling.mounted() || !there(filepath.Join(at, "file")) {
		t.Error("the sibling's mount is gone")
	}
}

// While a mount is in use it is neither detached nor reached through, and it is
// named; when the use ends in time, it goes.
func TestBusyMount(t *testing.T) {
	g := newGround(t)
	at := g.mount("", "busy")
	write(t, filepath.Join(at, "kept"))
	use, err := os.Open(filepath.Join(at, "kept"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = use.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	for what, do := range map[string]func(context.Context, string) error{"below": Below, "remove": Remove} {
		for range 2 { // the second time ctx has ended already
			err := do(ctx, g.dir)
			if !errors.Is(err, unix.EBUSY) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), at) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if !there(filepath.Join(at, "kept")) || !there(filepath.Join(g.dir, "plain", "file")) {
		t.Error("something was removed while a mount was in use")
	}
	time.AfterFunc(30*time.Millisecond, func() { _ = use.Close() })
	if err := Remove(soon(t), g.dir); err != nil {
		t.Error(err)
	}
	g.gone()
}

// What is mounted between the look and the removal is not reached through: it
// is unmounted like the rest, or, where it comes back each time, left and told.
func TestMountThatAppearsMeanwhile(t *testing.T) {
	for _, name := range []string{"plain", "new/deep", "."} {
		g := newGround(t)
		rounds := 0
		err := remove(soon(t), g.dir, func() {
			if rounds++; rounds <= 2 {
				g.mount(g.theirs, name)
			}
		})
		if err != nil || rounds != 3 {
			t.Errorf("%s: %v after %d rounds", name, err, rounds)
		}
		g.gone()
	}
	g := newGround(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := remove(ctx, g.dir, func() { g.mount(g.theirs, "back") })
	if err == nil || !strings.Contains(err.Error(), filepath.Join(g.dir, "back")) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that always comes back: %v", err)
	}
	g.intact()
}

// The kernel lists mounts by their real path, so a folder that is reached
// through a link must not look as if nothing were mounted in it.
func TestFolderReachedThroughALink(t *testing.T) {
	g := newGround(t)
	g.mount(g.theirs, "theirs")
	way := filepath.Join(t.TempDir(), "way")
	link(t, filepath.Dir(g.dir), way)
	if err := Remove(soon(t), filepath.Join(way, "dir")); err != nil {
		t.Error(err)
	}
	g.gone()
}
