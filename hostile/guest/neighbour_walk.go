package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var _ = route("neighbour", "walk", walkMounts)

// Bounds on the walk, which has to end well within the processor cap.
const (
	maxEntries  = 20_000   // names looked at on one mount
	maxFiles    = 5_000    // files read
	maxFileRead = 64 << 10 // of each
)

// search is what the walk looks for and what it has seen.
type search struct {
	name, digest             string // the neighbour's name, and the digest of its secret in hex
	entries, files, unopened int
	found                    string // where name or secret was, and which
	bounded                  []string
}

// walkMounts walks every mount of its own mount table for the neighbour's name
// and secret. A mount whose root may not even be listed is there, and refused:
// it is claimed so, because absent was due.
func walkMounts(p *Probe) {
	s := search{name: p.Param("neighbour_name"), digest: p.Param("neighbour_secret_sha256")}
	mounts, err := ownMounts()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	call := fmt.Sprintf("walk %d mounts", len(mounts))
	p.Reached(call, "looking for names and for secrets of the public form")
	for _, m := range inwards(mounts) {
		if refused := s.mount(m, mounts); refused != nil {
			var st unix.Stat_t
			if err := unix.Stat(m.Mountpoint, &st); err != nil {
				p.Failed("stat mount " + m.Mountpoint + ": " + err.Error())
				return
			}
			p.refusedBy("openat("+m.Mountpoint+")", unix.SYS_OPENAT, errnoOf(refused), byOwnership(&st, unix.R_OK))
			return
		}
		if s.found != "" {
			p.Happened(call, int64(s.entries), s.found)
			return
		}
	}
	note := fmt.Sprintf("%d names seen, %d files read, %d not ours to read", s.entries, s.files, s.unopened)
	if len(s.bounded) > 0 {
		note += "; not walked to the end: " + strings.Join(s.bounded, ", ")
	}
	p.Refused(hostile.Absent, hostile.MountTable, call, int64(s.entries), note)
}

// inwards orders the mounts so that the root, which is the image and by far the
// largest, comes last: a bound that is met there has let nothing else unseen.
func inwards(mounts []*mountinfo.Info) []*mountinfo.Info {
	var out, root []*mountinfo.Info
	for i, m := range mounts {
		switch {
		case hidden(mounts, i):
		case m.Mountpoint == "/":
			root = append(root, m)
		default:
			out = append(out, m)
		}
	}
	return append(out, root...)
}

// mount walks one mount, without those below it. The error is the refusal to
// open the mount's own root.
func (s *search) mount(m *mountinfo.Info, all []*mountinfo.Info) error {
	fd, err := unix.Open(m.Mountpoint, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open mount: %w", err)
	}
	unix.Close(fd) //nolint:errcheck,gosec // read only
	left := maxEntries
	werr := filepath.WalkDir(m.Mountpoint, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			s.unopened++ // a folder that may not be listed; its name was seen
			return nil
		case name != m.Mountpoint && d.IsDir() && mountOf(all, name).ID != m.ID:
			return fs.SkipDir
		case left == 0:
			s.bounded = append(s.bounded, m.Mountpoint)
			return fs.SkipAll
		}
		left--
		s.look(name, d, isPseudo(m))
		if s.found != "" {
			return fs.SkipAll
		}
		return nil
	})
	if werr != nil {
		s.bounded = append(s.bounded, m.Mountpoint+" ("+werr.Error()+")")
	}
	return nil
}

// look looks at one entry: its name, where a link leads, and what a regular file
// holds. Files of the kernel's own are not read: some wait, some never end, and
// our own command line holds the neighbour's name.
func (s *search) look(name string, d fs.DirEntry, pseudo bool) {
	s.entries++
	if strings.Contains(path.Base(name), s.name) {
		s.found = "a name: " + name
		return
	}
	if pseudo {
		return
	}
	if d.Type()&fs.ModeSymlink != 0 {
		if to, err := os.Readlink(name); err == nil && strings.Contains(to, s.name) {
			s.found = "a link: " + name + " to " + to
		}
		return
	}
	if !d.Type().IsRegular() || s.files >= maxFiles {
		return
	}
	f, err := os.Open(name)
	if err != nil {
		s.unopened++
		return
	}
	defer f.Close() //nolint:errcheck // read only
	s.files++
	head, err := io.ReadAll(io.LimitReader(f, maxFileRead))
	if err != nil {
		s.unopened++
	}
	if secret := s.secretIn(head); secret != "" {
		s.found = "the secret: " + secret + " in " + name
	}
}

// secretIn returns the neighbour's secret when it is in b. The order holds only
// its digest, so that it cannot be known without having been read.
func (s *search) secretIn(b []byte) string {
	for _, token := range secretFormat.FindAll(b, -1) {
		sum := sha256.Sum256(token)
		if hex.EncodeToString(sum[:]) == s.digest {
			return string(token)
		}
	}
	return ""
}
