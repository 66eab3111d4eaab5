package suites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
)

// The parts of a scene, as [Examine] names them.
const (
	PartFolder  = "state_dir"
	PartCgroups = "cgroups writable"
	PartSwap    = "swap accounting"
	PartHelpers = "helper processes"
	PartTmpfs   = "tmpfs"
	PartNetwork = "network"
	PartImage   = "image and overlay"
	PartSandbox = "sandbox"
)

// Part is one thing that a run's scene is made of.
type Part struct {
	Name string // one of the Part words
	Seen string // what was made, in words
	Err  error  // why it could not be; then Seen is empty
}

// Examination is what [Examine] saw of a host.
type Examination struct {
	Parts    []Part              // in the order in which they were made
	Controls []observers.Control // by the observers' names
}

// BesideSandbox returns the names of the observers whose control is a running
// sandbox of a run, which [Examine] leaves to that.
func BesideSandbox() []string { return slices.Clone(besideSandbox) }

// besideSandbox are the observers whose control is a running sandbox.
var besideSandbox = []string{"census", "clock", "listing", "output"}

// Examine makes a run's scene as far as this host lets it, runs one payload in it,
// lets every observer's control run on it as a run does, and removes the scene.
// It works in the run's own workshop, with the same lock and journal: what an
// earlier run or Examine left is removed first, and what this one leaves when it
// is killed, the next start of either removes.
//
// A part that cannot be made is a finding and no error, and the observers that
// look at it fail their control. The error says what could not be removed.
//
// One sandbox is started, because a runtime that says its version may still start
// none (an unknown platform, no /dev/kvm).
//
// What it does not show: the observers whose control is a running sandbox
// (census, clock, listing, output), and anything about a wall.
func Examine(ctx context.Context, cfg runsc.Config) (x Examination, err error) {
	s, err := enter(cfg, errand{})
	if err != nil {
		return Examination{Parts: []Part{{Name: PartFolder, Err: err}}}, nil
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	if !x.try(PartFolder, "a run's folder with its journal was made in "+s.shop.runs()+", and there is room for a run", errors.Join(s.settle(), s.room())) {
		return x, nil
	}
	if !x.group(ctx, s) {
		return x, nil // every other part and observer needs it
	}
	x.try(PartTmpfs, "a sized one was mounted and unmounted", s.tmpfs())
	s.world, err = fixtures.NewWorld(ctx, filepath.Join(s.dir, "world"), "place", s.journal)
	x.try(PartNetwork, "two namespaces and a veth pair were made", err)
	s.image, err = fixtures.NewImage(ctx, filepath.Join(s.dir, "image"), cfg.Image, s.journal)
	x.try(PartImage, "the image of a run was built and mounted", err)
	x.Controls, err = s.controls(ctx)
	if s.world != nil && s.image != nil { // last: what a sandbox needs beside is no business of the observers
		took, err := s.sandbox(ctx)
		x.try(PartSandbox, fmt.Sprintf("one was started under the configuration, and a payload of step 2 ran in it: %d ms", took.Milliseconds()), err)
	}
	return x, err
}

// try notes how a part went, and returns whether it is there.
func (x *Examination) try(name, seen string, err error) bool {
	if err != nil {
		seen = ""
	}
	x.Parts = append(x.Parts, Part{Name: name, Seen: seen, Err: err})
	return err == nil
}

// group makes the run's cgroup, looks whether the kernel accounts swap in it, and
// starts a first child there, by which the machine's pace is known.
func (x *Examination) group(ctx context.Context, s *Scene) bool {
	g, err := s.gather()
	if !x.try(PartCgroups, "a group was made and limited", err) {
		return false
	}
	_, err = g.SwapUsage()
	x.try(PartSwap, "the kernel accounts swap for each cgroup", err)
	x.try(PartHelpers, "the program starts itself again in that group", s.measure(ctx))
	return true
}

// runRoom is what a run takes of its state folder at most, in bytes: the image, the
// outputs of the jobs and the throwaway folders of controls.
const runRoom = 32 << 20

// room shows that the state folder has so much left.
func (s *Scene) room() error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", s.dir, err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < runRoom {
		return fmt.Errorf("%s has %d MiB left, and a run takes up to %d", s.dir, free>>20, runRoom>>20)
	}
	return nil
}

// sandbox runs one payload under the configuration, with nobody watching, and
// returns how long it took.
func (s *Scene) sandbox(ctx context.Context) (time.Duration, error) {
	var err error
	if s.identity, err = runsc.Identify(ctx, s.cfg.Runtime.Path); err != nil {
		return 0, err
	}
	if err := s.listen(); err != nil {
		return 0, err
	}
	if err := s.openRunner(); err != nil {
		return 0, err
	}
	i := slices.IndexFunc(Trials(), func(t *Trial) bool { return t.Attempt == hostile.Connection && t.Principal() })
	took, res, err := s.bare(ctx, Trials()[i])
	if err == nil && (res.Reason != exited || res.ExitCode != 0) {
		err = fmt.Errorf("one was started, and the payload in it ended as %q with %d: runsc starts and runs no program as it should", res.Reason, res.ExitCode)
	}
	return took, err
}

// tmpfs mounts a sized one, as every job's scratch is, and takes it away.
func (s *Scene) tmpfs() error {
	at := filepath.Join(s.dir, "tmpfs")
	if err := errors.Join(s.journal.Record("mount", at), os.Mkdir(at, 0o711)); err != nil {
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

// controls makes every observer that some trial asks, and controls it.
func (s *Scene) controls(ctx context.Context) (out []observers.Control, err error) {
	wanted := map[string]bool{}
	for _, t := range Trials() {
		for _, w := range t.Wants {
			wanted[w.Observer] = !slices.Contains(besideSandbox, w.Observer)
		}
	}
	maps.DeleteFunc(wanted, func(_ string, here bool) bool { return !here })
	e, err := openEyes(s, wanted)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	e.control(ctx)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		out = append(out, e.of(name)...)
	}
	return out, nil
}
