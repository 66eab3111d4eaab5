package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Parameters: "artifact_path" and "artifact_bytes", an artifact and its cap;
// "honest_path", "symlink_path", "symlink_target" ("/etc/shadow" when missing),
// "folder_path", "fifo_path"; "parent_path", a file below a folder that is a
// symlink. Paths are below scratch. What is made is only offered here: it is the
// runner that refuses it, once the payload has ended.
var (
	_ = route("disk", "large-artifact", offerLarge)
	_ = route("artifacts", "honest", func(p *Probe) {
		p.offer("write", p.Param("honest_path"), func(path string) error { return os.WriteFile(path, []byte("honest\n"), 0o600) })
	})
	_ = route("artifacts", "symlink", func(p *Probe) {
		target := p.ParamOr("symlink_target", "/etc/shadow")
		p.offer("symlink to "+target, p.Param("symlink_path"), func(path string) error { return os.Symlink(target, path) })
	})
	_ = route("artifacts", "folder", func(p *Probe) {
		p.offer("mkdir", p.Param("folder_path"), func(path string) error { return os.Mkdir(path, 0o700) })
	})
	_ = route("artifacts", "fifo", offerFifo)
	_ = route("artifacts", "parent-symlink", func(p *Probe) {
		p.offer("write below a symlinked folder", p.Param("parent_path"), belowSymlink)
	})
)

// offer makes something where an artifact is declared.
func (p *Probe) offer(call, name string, make func(path string) error) {
	path := filepath.Join(p.Scratch(), name)
	p.Reached(call, path)
	if err := make(path); err != nil {
		p.Failed(err.Error())
		return
	}
	st, err := os.Lstat(path)
	if err != nil {
		p.Failed(err.Error())
		return
	}
	p.Reading(fmt.Sprintf("%s is there: %s, %d bytes", path, st.Mode(), st.Size()))
}

// offerLarge offers a regular file of twice its cap.
func offerLarge(p *Probe) {
	size := 2 * p.Number("artifact_bytes")
	p.offer(fmt.Sprintf("write %d bytes", size), p.Param("artifact_path"), func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		for left := size; left > 0; {
			n, err := f.Write(diskFiller[:min(left, diskStep)])
			if err != nil {
				return err
			}
			left -= int64(n)
		}
		return nil
	})
}

// offerFifo offers a named pipe, at which a reader would wait for ever. The
// filter refuses to make one; where it is let through, the runner must refuse.
func offerFifo(p *Probe) {
	path := filepath.Join(p.Scratch(), p.Param("fifo_path"))
	const call = "mknodat(S_IFIFO)"
	p.Reached(call, path)
	var pins pinned
	defer pins.Unpin()
	end := inChild(unix.SYS_MKNODAT, [6]uintptr{dirAt, pins.str(path), unix.S_IFIFO | 0o600, 0}, childTimeout)
	if !p.refusedAt(call, unix.SYS_MKNODAT, end, nowhere) {
		p.Reading(path + " is there: a named pipe")
	}
}

// belowSymlink writes a regular file into a folder beside, and makes the folder
// above path a symlink to that one.
func belowSymlink(path string) error {
	dir := filepath.Dir(path)
	real := dir + ".real"
	if err := os.Mkdir(real, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(real, filepath.Base(path)), []byte("honest\n"), 0o600); err != nil {
		return err
	}
	return os.Symlink(filepath.Base(real), dir)
}
