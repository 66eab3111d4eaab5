package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxImage bounds the files of a base image that are looked at.
const maxImage = 1 << 20

// image is the identity of the base image: for an OCI layout the digest of its
// index (OCI image-spec, image-layout.md), and in every case a fingerprint over
// the name, mode, owner, size, times and inode of every file below. No content
// is read: a change of content changes the change time, and reading gigabytes on
// every tick would be felt by the work beside us. The run itself verifies the
// content of a layout, and reports the digest of what it mounted.
//
// So an image that is put there anew with the same content is a change, and
// costs a run.
func (h *Host) image(dir string) (string, error) {
	if dir == "" {
		return "none", nil
	}
	print, err := fingerprint(dir)
	if err != nil {
		return "", fmt.Errorf("image: %w", err)
	}
	if index := filepath.Join(dir, "index.json"); isFile(filepath.Join(dir, "oci-layout")) {
		digest, err := h.digests.Digest(index)
		if err != nil {
			return "", fmt.Errorf("image: %w", err)
		}
		return "index " + digest + ", files " + print, nil
	}
	return "files " + print, nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// fingerprint is over the metadata of a tree, in the order of its names.
func fingerprint(dir string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	sum, seen := sha256.New(), 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if seen++; seen > maxImage {
			return fmt.Errorf("%s holds more than %d files", dir, maxImage)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t) // always that type on Linux
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%q %o %d %d %d %d %d %d %d\n", rel, st.Mode, st.Uid, st.Gid, st.Size, st.Dev, st.Ino, st.Mtim.Nano(), st.Ctim.Nano())
		return err
	})
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
