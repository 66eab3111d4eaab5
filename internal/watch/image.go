package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
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
func (h *Host) image(dir string, touched bool) (string, error) {
	if dir == "" {
		return "empty", nil // as the report calls it
	}
	print, err := h.walked(dir, touched)
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

// walkedShare is the part of the time that walking an image may take while
// nothing tells of a change in it: one in so many. A small image is walked at
// every tick so, one of 250,000 files every few minutes.
const walkedShare = 200

// walk is what walking an image came to, and what it was then.
type walk struct {
	root   rootMark
	mounts string // upon it and below
	print  string
	at     time.Time
	took   time.Duration
}

// walked is the fingerprint, from the last walk where that still tells.
func (h *Host) walked(dir string, touched bool) (string, error) {
	now := walk{root: markRoot(dir), at: time.Now()}
	var err error
	if now.mounts, err = h.mountsBelow(now.root.path); err != nil {
		return "", err
	}
	h.walking.Lock()
	defer h.walking.Unlock()
	w := &h.walk
	if !touched && w.print != "" && w.root == now.root && w.mounts == now.mounts && now.at.Sub(w.at) < walkedShare*w.took {
		return w.print, nil
	}
	if now.print, err = fingerprint(dir); err != nil {
		h.walk = walk{}
		return "", err
	}
	now.took = time.Since(now.at)
	h.walk = now
	return now.print, nil
}

// mountsBelow tells one set of mounts upon a folder and below it from another.
func (h *Host) mountsBelow(root string) (string, error) {
	f, err := os.Open(filepath.Join(h.Proc, "self/mountinfo"))
	if err != nil {
		return "", err
	}
	defer f.Close() // read only
	infos, err := mountinfo.GetMountsFromReader(f, mountinfo.PrefixFilter(root))
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name(), err)
	}
	var words strings.Builder
	for _, m := range infos {
		fmt.Fprintf(&words, "%d %s\n", m.ID, m.Mountpoint)
	}
	return words.String(), nil
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
