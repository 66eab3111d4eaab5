package durable

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRemedied(t *testing.T) {
	for errno, says := range map[syscall.Errno]string{
		syscall.ENOSPC: "free some space", syscall.EDQUOT: "free some space", syscall.EROFS: "can be written", syscall.EACCES: "can be written", syscall.ENOTDIR: "not a file",
	} {
		if err := Remedied(errno); !errors.Is(err, errno) || !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v", int(errno), err)
		}
	}
	if err := Remedied(syscall.EIO); err != syscall.EIO { //nolint:errorlint // the very same
		t.Errorf("an error without a remedy became %v", err)
	}
	if Remedied(nil) != nil {
		t.Error("nil became an error")
	}
}

func TestSyncFolder(t *testing.T) {
	dir := t.TempDir()
	if err := SyncFolder(dir); err != nil {
		t.Error(err)
	}
	if err := SyncFolder(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there was synced")
	}
}
