package observers

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// TreeDigest returns the SHA-256, in hex, over the entries of a tree in the
// order of their paths, and how many there are, the root included. An entry
// counts with its path below root, type, mode, owner, group, device number,
// extended attributes, and by its type size and content or link target. Times,
// inode numbers and link counts don't count, so copies have equal digests.
//
// Links are not followed, and of all files only regular ones are opened, so that
// no fifo or device blocks.
func TreeDigest(root string) (digest string, entries int, err error) {
	sum := sha256.New()
	err = walkTree(context.Background(), root, func(e treeEntry) {
		entries++
		field(sum, []byte(e.path))
		sum.Write(e.sum[:])
	})
	if err != nil {
		return "", 0, fmt.Errorf("digest tree: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), entries, nil
}

// treeEntry is one entry of a tree and the sum of all that counts of it.
type treeEntry struct {
	path string // below the root; "." is the root
	sum  [sha256.Size]byte
}

func walkTree(ctx context.Context, root string, visit func(treeEntry)) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		sum, err := entrySum(path)
		if err != nil {
			return err
		}
		visit(treeEntry{rel, sum})
		return nil
	})
}

func entrySum(path string) (total [sha256.Size]byte, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return total, fmt.Errorf("stat %s: %w", path, err)
	}
	sum := sha256.New()
	number(sum, uint64(st.Mode), uint64(st.Uid), uint64(st.Gid))
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		err = content(sum, path)
	case unix.S_IFLNK:
		var target string
		target, err = os.Readlink(path)
		field(sum, []byte(target))
	case unix.S_IFCHR, unix.S_IFBLK:
		number(sum, uint64(st.Rdev))
	}
	if err = errors.Join(err, attributes(sum, path)); err != nil {
		return total, err
	}
	return [sha256.Size]byte(sum.Sum(nil)), nil
}

// content opens without following a link and without waiting: the entry may
// have become something else since it was looked at.
func content(sum hash.Hash, path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("read %s: no longer a regular file", path)
	}
	number(sum, uint64(info.Size()))
	n, err := io.Copy(sum, f)
	if err == nil && n != info.Size() {
		err = fmt.Errorf("read %s: %d of %d bytes", path, n, info.Size())
	}
	return err
}

// attributes sums the extended attributes in the order of their names
// (llistxattr(2)); a file system without them has none.
func attributes(sum hash.Hash, path string) error {
	names, err := attribute(func(b []byte) (int, error) { return unix.Llistxattr(path, b) })
	if err != nil {
		return fmt.Errorf("list attributes of %s: %w", path, err)
	}
	for _, name := range slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00")) {
		if name == "" {
			continue
		}
		value, err := attribute(func(b []byte) (int, error) { return unix.Lgetxattr(path, name, b) })
		if err != nil {
			return fmt.Errorf("read attribute %s of %s: %w", name, path, err)
		}
		field(sum, []byte(name))
		field(sum, value)
	}
	return nil
}

// attribute asks for the size first, as xattr(7) has it.
func attribute(read func([]byte) (int, error)) ([]byte, error) {
	size, err := read(nil)
	if errors.Is(err, unix.ENOTSUP) || size <= 0 {
		if errors.Is(err, unix.ENOTSUP) {
			err = nil
		}
		return nil, err
	}
	value := make([]byte, size)
	size, err = read(value)
	return value[:max(size, 0)], err
}

// field and number write parts so that no two sequences of parts look alike.
func field(w io.Writer, part []byte) {
	number(w, uint64(len(part)))
	_, _ = w.Write(part) // a hash never fails
}

func number(w io.Writer, numbers ...uint64) {
	for _, n := range numbers {
		_, _ = w.Write(binary.BigEndian.AppendUint64(nil, n))
	}
}
