package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

func TestQuotaPlaceNeedsAFullScratchOfTheGrantedSize(t *testing.T) {
	full := unix.Statfs_t{Bsize: 4096, Blocks: 16384}
	halfFree := unix.Statfs_t{Bsize: 4096, Blocks: 16384, Bavail: 8192}
	larger := unix.Statfs_t{Bsize: 4096, Blocks: 32768}
	for _, c := range []struct {
		kind hostile.Kind
		now  unix.Statfs_t
		want hostile.Place
	}{
		{hostile.ENOSPC, full, hostile.ScratchQuota},
		{hostile.SIGBUS, full, hostile.ScratchQuota},
		{hostile.EIO, full, hostile.Unknown},
		{hostile.ENOSPC, halfFree, hostile.Unknown},
		{hostile.ENOSPC, larger, hostile.Unknown},
	} {
		if got := quotaPlace(c.kind, c.now, 64<<20); got != c.want {
			t.Errorf("%s with %d of %d blocks free gave %q", c.kind, c.now.Bavail, c.now.Blocks, got)
		}
	}
}

// TestFillingStopsOneStepBeyondTheGrant fills a folder without a quota.
func TestFillingStopsOneStepBeyondTheGrant(t *testing.T) {
	for _, route := range []string{"large-file", "small-files", "fallocate", "mmap", "unnamed-file", "deleted-file"} {
		t.Run(route, func(t *testing.T) {
			dir := t.TempDir()
			claims := claimsOf(t, hostile.Order{Nonce: "n", Routes: []string{"disk/" + route}, Params: map[string]string{
				"scratch": dir, "scratch_bytes": "2097152",
			}})
			if len(claims) != 2 || claims[0].Event != hostile.Reached || claims[1].Event != hostile.Happened {
				t.Fatalf("claims %+v", claims)
			}
			if n := claims[1].Count; n <= 2<<20 || n > 3<<20 {
				t.Errorf("%d bytes", n)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestClosedPlaceIsOpen(t *testing.T) {
	dir := t.TempDir()
	claims := claimsOf(t, hostile.Order{Nonce: "n", Routes: []string{"disk/root"}, Params: map[string]string{"open_dir": dir}})
	if len(claims) != 2 || claims[1].Event != hostile.Happened || claims[1].Count != 4<<20 {
		t.Errorf("claims %+v", claims)
	}
}

func TestOffersAreThere(t *testing.T) {
	dir := t.TempDir()
	claims := claimsOf(t, hostile.Order{
		Nonce:  "n",
		Routes: []string{"disk/large-artifact", "artifacts/honest", "artifacts/symlink", "artifacts/folder", "artifacts/parent-symlink"},
		Params: map[string]string{
			"scratch": dir, "artifact_path": "large", "artifact_bytes": "1500000", "honest_path": "honest",
			"symlink_path": "symlink", "folder_path": "folder", "parent_path": "parent/file",
		},
	})
	if len(claims) != 10 {
		t.Errorf("claims %+v", claims)
	}
	for i, c := range claims {
		if want := []hostile.Event{hostile.Reached, hostile.Reading}[i%2]; c.Event != want {
			t.Errorf("claim %+v, not %s", c, want)
		}
	}
	for name, want := range map[string]os.FileMode{
		"large": 0, "honest": 0, "symlink": os.ModeSymlink, "folder": os.ModeDir, "parent": os.ModeSymlink, "parent/file": 0,
	} {
		st, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || st.Mode().Type() != want {
			t.Errorf("%s: %v, %v", name, st, err)
		}
		if name == "large" && st.Size() != 3_000_000 {
			t.Errorf("%d bytes, not twice the cap", st.Size())
		}
	}
}

func TestFillerIsNoClaim(t *testing.T) {
	if len(fillerLine) != hostile.MaxClaimBytes || fillerLine[len(fillerLine)-1] != '\n' || fillerLine[0] == '{' {
		t.Errorf("filler of %d bytes: %.10q...", len(fillerLine), fillerLine)
	}
}
