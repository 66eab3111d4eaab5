package runsc

import (
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"
)

func TestBoundedAddsAWallClock(t *testing.T) {
	w := Walls{CPU: time.Second}
	if got := w.bounded(time.Minute).Wall; got != 64*time.Second {
		t.Errorf("wall clock %s", got)
	}
	if got := (Walls{}).bounded(time.Minute).Wall; got != time.Minute {
		t.Errorf("wall clock %s", got)
	}
	if got := (Walls{Wall: time.Second}).bounded(time.Minute).Wall; got != time.Second {
		t.Errorf("wall clock %s", got)
	}
}

// The operator of a slow machine raises the wall clock, and the bounds of the
// runner's own steps with it; nobody can take them away by lowering it.
func TestBoundsGrowWithTheMachine(t *testing.T) {
	for _, c := range []struct{ wall, end, grace, list time.Duration }{
		{time.Second, 10 * time.Second, 20 * time.Second, 5 * time.Second},
		{10 * time.Second, 10 * time.Second, 20 * time.Second, 5 * time.Second},
		{100 * time.Second, 100 * time.Second, 200 * time.Second, 50 * time.Second},
	} {
		cfg := DefaultConfig()
		cfg.Limits.Wall = Duration(c.wall)
		if cfg.endWithin() != c.end || cfg.startGrace() != c.grace || cfg.listWithin() != c.list {
			t.Errorf("wall clock %s: %s, %s, %s", c.wall, cfg.endWithin(), cfg.startGrace(), cfg.listWithin())
		}
	}
}

func TestFileDigestDoesNotWait(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 1)
	go func() {
		_, err := FileDigest(pipe)
		said <- err
	}()
	select {
	case err := <-said:
		if err == nil || err.Error() != "digest "+pipe+": not a regular file" {
			t.Errorf("a named pipe: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("waits for somebody to write to the pipe")
		if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil { // lets it go
			_ = f.Close()
		}
	}
}

// cgroupsAt lists what stands at a group's path under root: in the one tree of
// version 2, and in every tree that is mounted below it (version 1, and the
// version 2 tree of a hybrid machine).
func cgroupsAt(root, path string) ([]string, error) {
	var out []string
	for _, pattern := range []string{root + path, root + "/*" + path} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func TestCgroupsAtLooksAtBothVersions(t *testing.T) {
	root := t.TempDir()
	if got, err := cgroupsAt(root, "/parent/job"); err != nil || len(got) > 0 {
		t.Errorf("nothing there: %v, %v", got, err)
	}
	for _, dir := range []string{"/parent/job", "/memory/parent/job", "/unified/parent/job", "/parent/other", "/a/b/parent/job"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{root + "/parent/job", root + "/memory/parent/job", root + "/unified/parent/job"}
	if got, err := cgroupsAt(root, "/parent/job"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
