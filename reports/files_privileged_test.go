//go:build privileged

package reports

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tinyDisk mounts a file system of so many bytes.
func tinyDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("mounting a tmpfs needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NODEV|syscall.MS_NOSUID|syscall.MS_NOEXEC, "size="+size+",mode=700"); err != nil {
		t.Fatalf("mount tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func checkFull(t *testing.T, err error, file string) {
	t.Helper()
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("err = %v, want no space, %s and the remedy", err, file)
	}
}

// The first file fits and the second does not: the earlier run stands whole.
func TestFullDiskKeepsTheEarlierRun(t *testing.T) {
	dir := tinyDisk(t, "64k")
	mustWrite(t, dir, qualifiedFiles())
	files := qualifiedFiles()
	files[ReportFile] = []byte("r2")
	files[JUnitFile] = bytes.Repeat([]byte("x"), 128<<10)
	checkFull(t, WriteFiles(dir, files), filepath.Join(dir, JUnitFile))
	want := map[string]string{ReportFile: "r1", JUnitFile: "j1", CapabilitiesFile: "c1", AttestationFile: "a1"}
	if diff := cmp.Diff(want, folder(t, dir)); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

// A run that does not qualify takes the old capability away even when its own
// report finds no room.
func TestFullDiskKeepsNoOldCapability(t *testing.T) {
	dir := tinyDisk(t, "64k")
	mustWrite(t, dir, qualifiedFiles())
	err := WriteFiles(dir, map[string][]byte{ReportFile: bytes.Repeat([]byte("x"), 128<<10), JUnitFile: []byte("j2")})
	checkFull(t, err, filepath.Join(dir, ReportFile))
	if diff := cmp.Diff(map[string]string{ReportFile: "r1", JUnitFile: "j1"}, folder(t, dir)); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	dir := tinyDisk(t, "64k")
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatalf("remount: %v", err)
	}
	err := WriteFiles(dir, qualifiedFiles())
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "choose a folder that can be written") {
		t.Errorf("err = %v", err)
	}
}

// A name that cannot be replaced, half way through: nothing vouches for the mixture.
func TestFailedRenameLeavesNothingThatVouches(t *testing.T) {
	dir := tinyDisk(t, "64k")
	mustWrite(t, dir, qualifiedFiles())
	busy := filepath.Join(dir, JUnitFile)
	if err := syscall.Mount(busy, busy, "", syscall.MS_BIND, ""); err != nil {
		t.Fatalf("bind mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(busy, 0); err != nil {
			t.Errorf("unmount %s: %v", busy, err)
		}
	})
	files := qualifiedFiles()
	files[ReportFile] = []byte("r2")
	if err := WriteFiles(dir, files); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), busy) {
		t.Errorf("err = %v", err)
	}
	if diff := cmp.Diff(map[string]string{ReportFile: "r2", JUnitFile: "j1"}, folder(t, dir)); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}
