package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/filedigest"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Identity is what a qualification is about. A qualification of another identity
// says nothing about this one. Digests are "sha256:<hex>"; the tag words is how a
// change of the field is told.
type Identity struct {
	Runtime        string `json:"runtime" words:"runsc binary"`
	Config         string `json:"config" words:"runner configuration"` // effective: comments and order change nothing
	EntryPoints    string `json:"entry_points" words:"entry-point profile"`
	Guest          string `json:"guest" words:"guest payload"`
	Image          string `json:"image" words:"base image"` // see the method image of Host; "empty" without one
	Kernel         string `json:"kernel" words:"kernel release"`
	KernelVersion  string `json:"kernel_version" words:"kernel version"`
	BootID         string `json:"boot_id" words:"boot id"`
	CgroupMode     string `json:"cgroup_mode" words:"cgroup mode"`
	KernelCommand  string `json:"kernel_command" words:"kernel command line"`
	SecurityModule string `json:"security_modules" words:"security modules"` // in their order; "not shown" without securityfs
	Harness        string `json:"harness" words:"harness binary"`
}

// Change is one field in which two identities differ.
type Change struct {
	What   string `json:"what"` // in words: "runsc binary"
	Before string `json:"before"`
	After  string `json:"after"`
}

func (c Change) String() string {
	return fmt.Sprintf("%s: %s before, %s now", c.What, brief(c.Before), brief(c.After))
}

// Changes is how i differs from an earlier identity, in the order of the fields.
func (i Identity) Changes(before Identity) []Change {
	var out []Change
	now, then := reflect.ValueOf(i), reflect.ValueOf(before)
	for n := range now.NumField() {
		if a, b := then.Field(n).String(), now.Field(n).String(); a != b {
			out = append(out, Change{now.Type().Field(n).Tag.Get("words"), a, b})
		}
	}
	return out
}

// told joins changes in words.
func told(changes []Change) string {
	words := make([]string, 0, len(changes))
	for _, c := range changes {
		words = append(words, c.String())
	}
	return strings.Join(words, "; ")
}

// Host reads the identity of this machine. Its roots are parameters, so that
// tests have machines of their own; [ThisHost] has the usual ones.
type Host struct {
	Proc       string // proc(5)
	Security   string // securityfs
	Cgroup     string // the cgroup file systems
	Executable string // the harness on the disk, which is what the next child runs
	Uname      func(*unix.Utsname) error

	digests filedigest.Cache

	walking sync.Mutex // a look that was given up can still walk
	walk    walk
}

// ThisHost is the machine that we run on.
func ThisHost() (*Host, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	// A program that is replaced while it runs is shown under this suffix
	// (proc(5), /proc/pid/exe).
	self = strings.TrimSuffix(self, " (deleted)")
	return &Host{Proc: "/proc", Security: "/sys/kernel/security", Cgroup: "/sys/fs/cgroup", Executable: self, Uname: unix.Uname}, nil
}

// Read is one look at everything under one runner configuration. What has to be
// watched is returned beside an error too: then the identity is not known, and
// nothing may be published.
func (h *Host) Read(runner string, touched bool) (i Identity, watched Watched, err error) {
	watched.Paths = []string{runner, h.Executable}
	cfg, err := runsc.LoadConfig(runner)
	if err != nil {
		return Identity{}, watched, err
	}
	watched.Paths = append(watched.Paths, cfg.Runtime.Path)
	if cfg.Image != "" {
		watched.Trees = []string{cfg.Image}
	}
	var errs []error
	set := func(field *string, read func() (string, error)) {
		v, err := read()
		if err != nil {
			errs = append(errs, err)
		}
		*field = v
	}
	digest := func(what, path string) func() (string, error) {
		return func() (string, error) {
			d, err := h.digests.Digest(path)
			if err != nil {
				return "", fmt.Errorf("%s: %w", what, err)
			}
			return d, nil
		}
	}
	set(&i.Runtime, func() (string, error) {
		if err := runsc.NotScript(cfg.Runtime.Path); err != nil {
			return "", err
		}
		return digest("runtime.path", cfg.Runtime.Path)()
	})
	set(&i.Config, cfg.Digest)
	set(&i.EntryPoints, func() (string, error) { return profile(cfg.EntryPoints) })
	set(&i.Guest, guest)
	set(&i.Image, func() (string, error) { return h.image(cfg.Image, touched) })
	set(&i.BootID, func() (string, error) { return h.line("sys/kernel/random/boot_id") })
	set(&i.KernelCommand, func() (string, error) { return h.line("cmdline") })
	set(&i.CgroupMode, h.cgroupMode)
	set(&i.SecurityModule, h.securityModules)
	set(&i.Harness, digest("harness", h.Executable))
	var u unix.Utsname
	if err := h.Uname(&u); err != nil {
		errs = append(errs, fmt.Errorf("uname: %w", err))
	}
	i.Kernel, i.KernelVersion = unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:])
	if err := errors.Join(errs...); err != nil {
		return Identity{}, watched, err
	}
	return i, watched, nil
}

// Reread implements [Reader]: the binaries are read whole, since a write through
// a mapping (mmap(2), MAP_SHARED) can leave the times of a file as they were.
// What cannot be read is the next look's to tell.
func (h *Host) Reread(runner string) {
	paths := []string{h.Executable}
	if cfg, err := runsc.LoadConfig(runner); err == nil {
		paths = append(paths, cfg.Runtime.Path)
	}
	for _, p := range paths {
		_, _ = h.digests.Reread(p) // see above
	}
}

// profile names the filter and hashes all of its rules: the list of
// a name can change with the program.
func profile(e runsc.EntryPoints) (string, error) {
	f := runsc.DenyAllFilter(e.Action).With(e.Allow...)
	data, err := sandbox.Canonical(*f)
	if err != nil {
		return "", fmt.Errorf("entry-point profile: %w", err)
	}
	return fmt.Sprintf("%s %s, %d calls, %s", e.Profile, e.Action, len(f.Allow), evidence.Digest(data)), nil
}

// guest is the digest of the payload that this daemon carries. That of the
// child is covered by the digest of the harness on the disk.
var guest = sync.OnceValues(func() (string, error) {
	payload, err := fixtures.Guest()
	if err != nil {
		return "", err
	}
	return evidence.Digest(payload), nil
})

// maxLine bounds the files of one line that the kernel shows, in bytes.
const maxLine = 64 << 10

func (h *Host) line(name string) (string, error) { return line(filepath.Join(h.Proc, name)) }

func line(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if len(data) > maxLine {
		return "", fmt.Errorf("%s: %d bytes, more than %d", path, len(data), maxLine)
	}
	return strings.TrimSpace(string(data)), nil
}

func (h *Host) cgroupMode() (string, error) {
	c, err := cgroup.Detect(h.Cgroup)
	if err != nil {
		return "", err
	}
	return "version " + strconv.Itoa(c.Version()), nil
}

// notShown stands for security modules on a machine without securityfs, where
// nobody can list them. That is no error: it is compared like any other value.
const notShown = "not shown: securityfs is not mounted"

func (h *Host) securityModules() (string, error) {
	v, err := line(filepath.Join(h.Security, "lsm"))
	if errors.Is(err, os.ErrNotExist) {
		return notShown, nil
	}
	return v, err
}
