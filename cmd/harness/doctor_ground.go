package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/sandbox/runsc"
)

// ground is what the doctor makes on the host, in one temporary folder and one
// cgroup, so that the observers have something to look at. Each part may be
// missing: that is a finding, and the observers that stand on it are blind.
type ground struct {
	dir     string
	prefix  string // cgroup
	group   *cgroup.Group
	world   *fixtures.World
	image   *fixtures.Image
	fromCfg runsc.Config
}

// noJournal is for a ground that lives a second. A doctor that is killed by
// SIGKILL in it leaves a folder below the temporary one, and its mounts.
type noJournal struct{}

func (noJournal) Record(string, string) error { return nil }

// clearWithin bounds the removal of the ground.
const clearWithin = 10 * time.Second

// level makes the ground and tells how each part went.
func level(ctx context.Context, cfg runsc.Config, h *cgroup.Hierarchy) (*ground, []finding) {
	g := &ground{prefix: cfg.CgroupParent + "-doctor-" + strings.ToLower(rand.Text()[:8]), fromCfg: cfg}
	var out []finding
	try := func(name, seen, remedy string, do func() error) {
		f := finding{Name: name, Seen: seen}
		if err := do(); err != nil {
			f.Seen, f.Remedy = err.Error(), remedy
		} else {
			f.OK = true
		}
		out = append(out, f)
	}
	try("temporary folder", "can be made in "+os.TempDir(), "set TMPDIR to a folder that root can write to", func() (err error) {
		g.dir, err = os.MkdirTemp("", "tenwalls-doctor-")
		if err != nil {
			return err
		}
		return errors.Join(os.Mkdir(filepath.Join(g.dir, "world"), 0o711), os.Mkdir(filepath.Join(g.dir, "image"), 0o711))
	})
	try("cgroups writable", "a group was made, limited and removed", "let the harness write below the cgroup root: not in a container with a read-only cgroup file system", func() (err error) {
		g.group, err = h.Create(g.prefix+"/helpers", cgroup.Limits{MemoryBytes: 64 << 20, SwapBytes: -1, PIDs: 64})
		if err == nil {
			out = append(out, swap(g.group))
		}
		return err
	})
	if g.dir == "" {
		return g, out
	}
	try("tmpfs", "a sized one was mounted and unmounted", "run where mount(2) is allowed: as real root with CAP_SYS_ADMIN", func() error { return tmpfs(g.dir) })
	try("network", "two namespaces and a veth pair were made", "load the kernel modules veth and nf_tables, and allow network namespaces", func() (err error) {
		g.world, err = fixtures.NewWorld(ctx, filepath.Join(g.dir, "world"), "doctor", noJournal{})
		return err
	})
	try("image and overlay", "the image of a run was built and mounted", "a kernel with overlayfs (modprobe overlay); with image: set, a base image that can be read", func() (err error) {
		g.image, err = fixtures.NewImage(ctx, filepath.Join(g.dir, "image"), cfg.Image, noJournal{})
		return err
	})
	return g, out
}

// swap is for information: without the account, swap is simply not limited.
func swap(g *cgroup.Group) finding {
	f := finding{Name: "swap accounting", OK: true, Note: true, Seen: "the kernel accounts swap for each cgroup"}
	if _, err := g.SwapUsage(); err != nil {
		f.OK, f.Seen, f.Remedy = false, err.Error(), "turn swap off (swapoff -a), or boot with swapaccount=1"
	}
	return f
}

// tmpfs mounts a sized one and takes it away.
func tmpfs(dir string) error {
	at := filepath.Join(dir, "tmpfs")
	if err := os.Mkdir(at, 0o711); err != nil {
		return err
	}
	if err := unix.Mount("tenwalls", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1048576"); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	if err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount tmpfs: %w", err)
	}
	return nil
}

// clear removes everything, also after the doctor was interrupted.
func (g *ground) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), clearWithin)
	defer cancel()
	var errs []error
	if g.world != nil {
		errs = append(errs, g.world.Close())
	}
	if g.image != nil {
		errs = append(errs, g.image.Close())
	}
	if g.group != nil {
		errs = append(errs, g.group.Kill(ctx))
	}
	return errors.Join(append(errs, g.removeGroup(ctx), g.removeFolder())...)
}

func (g *ground) removeFolder() error {
	if g.dir == "" {
		return nil
	}
	return os.RemoveAll(g.dir)
}

// removeGroup removes the doctor's cgroup with all below it.
func (g *ground) removeGroup(ctx context.Context) error {
	if g.group == nil {
		return nil
	}
	h, err := cgroup.Detect("/sys/fs/cgroup")
	if err != nil {
		return err
	}
	all, err := h.Open(g.prefix)
	if err != nil {
		return err
	}
	return all.Remove(ctx)
}
