package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

func fixtureMounts(t *testing.T, name string) []*mountinfo.Info {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mounts, err := mountinfo.GetMountsFromReader(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return mounts
}

func TestMountTablesOfBothBuilds(t *testing.T) {
	for _, name := range []string{"mountinfo-2026", "mountinfo-2022"} {
		mounts := fixtureMounts(t, name)
		for _, c := range []struct {
			path, mount      string
			readOnly, pseudo bool
		}{
			{"/", "/", true, false},
			{"/tenwalls/open/file", "/", true, false},
			{"/scratchy", "/", true, false},
			{"/scratch", "/scratch", false, false},
			{"/scratch/a/b", "/scratch", false, false},
			{"/dev/null", "/dev", false, true},
			{"/dev/shm/x", "/dev/shm", true, false},
			{"/dev/pts", "/dev/pts", false, true},
			{"/proc/self/mem", "/proc", false, true},
			{"/sys", "/sys", true, true},
			{"/tmp", "/tmp", true, false},
		} {
			m := mountOf(mounts, c.path)
			if m == nil || m.Mountpoint != c.mount || readOnly(m) != c.readOnly || isPseudo(m) != c.pseudo {
				t.Errorf("%s: %s is on %+v, want %+v", name, c.path, m, c)
			}
		}
	}
}

func TestTheLastMountOnAPathCounts(t *testing.T) {
	mounts := []*mountinfo.Info{
		{ID: 1, Mountpoint: "/", Options: "ro"}, {ID: 2, Mountpoint: "/a", Options: "ro"}, {ID: 3, Mountpoint: "/a", Options: "rw,rootcontext"},
	}
	if m := mountOf(mounts, "/a/b"); m.ID != 3 || readOnly(m) {
		t.Errorf("/a/b is on %+v", m)
	}
	if !hidden(mounts, 1) || hidden(mounts, 2) || hidden(mounts, 0) {
		t.Error("the wrong mount is taken for hidden")
	}
	if got := inwards(mounts); len(got) != 2 || got[0].ID != 3 || got[1].ID != 1 {
		t.Errorf("order of the walk: %+v", got)
	}
}

func TestRefusedByOwnership(t *testing.T) {
	nobody := identity{65534, 65534}
	for _, c := range []struct {
		who        identity
		uid, gid   uint32
		mode, want uint32
		errno      unix.Errno
		place      hostile.Place
	}{
		{nobody, 0, 0, 0o600, unix.R_OK, unix.EACCES, hostile.FileOwnership},
		{nobody, 0, 0, 0o600, unix.R_OK, unix.EPERM, hostile.Unknown},
		{nobody, 0, 0, 0o604, unix.R_OK, unix.EACCES, hostile.Unknown}, // allowed, so something else refused
		{nobody, 0, 0, 0o660, unix.R_OK, unix.EACCES, hostile.FileOwnership},
		{nobody, 0, 65534, 0o640, unix.R_OK, unix.EACCES, hostile.Unknown},
		{nobody, 65534, 0, 0o066, unix.R_OK, unix.EACCES, hostile.FileOwnership}, // the owner's bits alone count
		{nobody, 0, 0, 0o755, unix.W_OK | unix.X_OK, unix.EACCES, hostile.FileOwnership},
		{nobody, 0, 0, 0o777, unix.W_OK | unix.X_OK, unix.EACCES, hostile.Unknown},
		{identity{0, 0}, 1, 1, 0o600, unix.R_OK, unix.EACCES, hostile.Unknown}, // a mode forbids root nothing
	} {
		st := unix.Stat_t{Uid: c.uid, Gid: c.gid, Mode: unix.S_IFREG | c.mode}
		if got, note := c.who.behind(&st, c.want)(c.errno); got != c.place {
			t.Errorf("%+v: at %q (%s)", c, got, note)
		}
	}
}
