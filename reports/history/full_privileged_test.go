//go:build privileged

package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
)

// The disk is filled to the last page: what cannot be added is told, what was
// there stands, and once there is room the ledger goes on.
func TestFullDiskKeepsTheLedger(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("mounting a tmpfs needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NODEV|syscall.MS_NOSUID|syscall.MS_NOEXEC, "size=64k,mode=700"); err != nil {
		t.Fatalf("mount tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	h := In(dir)
	added := 0
	var full error
	for full == nil && added < 1000 {
		if full = h.Finish(finished(added, hostile.Qualified)); full == nil {
			added++
		}
	}
	if !errors.Is(full, syscall.ENOSPC) || !strings.Contains(full.Error(), "free some space") || !strings.Contains(full.Error(), FileName) {
		t.Fatalf("after %d runs: %v", added, full)
	}
	before, err := os.ReadFile(h.Path())
	must(t, err)
	if !bytes.HasSuffix(before, []byte("}\n")) {
		t.Errorf("a part of a line was left: %q", before[max(0, len(before)-80):])
	}
	entries, damage, err := h.Entries(time.Time{})
	must(t, err)
	if len(entries) != added || added < 20 || len(damage) != 0 {
		t.Errorf("%d entries of %d, damage %q", len(entries), added, damage)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=128k"); err != nil {
		t.Fatalf("remount: %v", err)
	}
	must(t, h.Finish(finished(added, hostile.Qualified)))
	if entries, _, err = h.Entries(time.Time{}); err != nil || len(entries) != added+1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	must(t, os.Remove(filepath.Join(dir, "harness", FileName+".lock")))
}

func TestReadOnlyStateFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("mounting a tmpfs needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "size=64k"); err != nil {
		t.Fatalf("mount tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	if err := In(dir).Begin(begun(1)); !errors.Is(err, syscall.EROFS) {
		t.Errorf("err = %v", err)
	}
}
