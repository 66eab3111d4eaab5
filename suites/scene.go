package suites

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Scene is what stands in the world for one run.
type Scene struct {
	Run            string // "run_..."
	Nonce          string // of this run's claims
	AbstractSocket string // of a host listener in the place's network namespace
	SocketPath     string // of a host listener, as the guest sees it

	cfg       runsc.Config // the operator's, with the harness's own folders
	identity  runsc.Identity
	cgroups   *cgroup.Hierarchy
	shop      *workshop
	dir       string
	journal   *journal
	world     *fixtures.World
	image     *fixtures.Image
	runner    *runsc.Runner
	shelf     *shelf
	key       ed25519.PrivateKey
	neighbour Neighbour
	listeners []net.Listener
	slow      float64 // how many times slower than usual this machine is
	mandate   *mandate
	mutant    *Mutant // nil: none
	guest     bool    // the workshop is somebody else's
	nice      int     // of the jobs
}

// Neighbour is another reader's job.
type Neighbour struct {
	Job    id.ID
	Name   string // of its submission
	Folder string // host path of its inputs
	Secret string
}

// Neighbour returns the job whose submission must not be seen.
func (s *Scene) Neighbour() Neighbour { return s.neighbour }

// Limits is the grant under test.
func (s *Scene) Limits() sandbox.Limits { return s.cfg.Limits.Limits() }

// filter is the entry-point filter under test.
func (s *Scene) filter() *runsc.Filter { return s.cfg.Walls().Filter }

// Destination is an address of the internet's stand-in that belongs to that
// cell alone.
func (s *Scene) Destination(cell string) (v4, v6 netip.Addr) { return s.world.Destination(cell) }

var errNotRoot = errors.New("not root: cgroups, network namespaces, mounts, fanotify and runsc need it; run as root")

// errand is what a scene is set for beside an ordinary run, which has none of it.
type errand struct {
	run    string    // its id; empty: one is made
	nice   int       // of the jobs
	shop   *workshop // the caller's; nil: one is opened and closed with the scene
	mutant *Mutant   // nil: none
}

// enter takes the workshop for one run, in which nothing stands yet.
func enter(cfg runsc.Config, e errand) (_ *Scene, err error) {
	if os.Geteuid() != 0 {
		return nil, errNotRoot
	}
	s := &Scene{
		Run: cmp.Or(e.run, string(id.New("run"))), Nonce: rand.Text(), SocketPath: "/tenwalls/host.sock",
		cfg: cfg, shelf: newShelf(), mandate: newMandate(cfg.Limits),
		shop: e.shop, guest: e.shop != nil, mutant: e.mutant, nice: e.nice,
	}
	s.AbstractSocket = "tenwalls-" + s.Nonce[:8]
	if s.cgroups, err = cgroup.Detect("/sys/fs/cgroup"); err != nil {
		return nil, err
	}
	if s.shop == nil {
		if s.shop, err = openWorkshop(cfg.StateDir, s.cgroups); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// setScene makes everything that the run needs. On an error nothing is left.
func setScene(ctx context.Context, cfg runsc.Config, e errand) (_ *Scene, err error) {
	s, err := enter(cfg, e)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.strike())
		}
	}()
	if err := s.settle(); err != nil {
		return nil, err
	}
	if _, err := s.gather(); err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.measure(gctx) })
	g.Go(func() (err error) {
		s.identity, err = runsc.Identify(gctx, cfg.Runtime.Path)
		return err
	})
	g.Go(func() (err error) {
		s.world, err = fixtures.NewWorld(gctx, filepath.Join(s.dir, "world"), "place", s.journal)
		return err
	})
	g.Go(func() (err error) {
		s.image, err = fixtures.NewImage(gctx, filepath.Join(s.dir, "image"), cfg.Image, s.journal, e.mutant.layer()...)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	if m := e.mutant; m != nil && m.World != nil {
		if err := m.World(ctx, s); err != nil {
			return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
		}
	}
	return s, s.openRunner()
}

// settle makes the run's folders and its journal.
func (s *Scene) settle() error {
	s.dir = filepath.Join(s.shop.runs(), s.Run)
	for _, d := range []string{s.dir, filepath.Join(s.dir, "world"), filepath.Join(s.dir, "image"), s.void()} {
		if err := os.MkdirAll(d, 0o711); err != nil {
			return fmt.Errorf("make run folder: %w", err)
		}
	}
	var err error
	if s.journal, err = newJournal(s.dir); err != nil {
		return err
	}
	parent := s.cfg.CgroupParent
	s.cfg.CgroupParent = path.Join(parent, s.Run)
	s.cfg.StateDir = filepath.Join(s.dir, "runner")
	s.neighbour = Neighbour{Job: id.New(sandbox.PrefixJob), Name: "submission-" + s.Nonce[:12] + ".txt", Secret: fixtures.NewSecret()}
	s.neighbour.Folder = filepath.Join(s.cfg.StateDir, "jobs", string(s.neighbour.Job), "inputs")
	return nil
}

// The guard around a run, in jobs' limits: what a payload takes at most where
// its own wall is down, which is four, and what those beside it may.
const guardFactor = 12

// gather makes the run's cgroup, the guard around everything in it, and that of
// its helpers.
func (s *Scene) gather() (*cgroup.Group, error) {
	if err := s.journal.Record("cgroup", s.cfg.CgroupParent); err != nil {
		return nil, err
	}
	guard := cgroup.Limits{MemoryBytes: guardFactor * int64(s.cfg.Limits.Memory), PIDs: guardFactor * s.cfg.Limits.HostTasks}
	if s.mutant != nil && s.mutant.Swaps {
		guard.SwapBytes = guard.MemoryBytes
	}
	if _, err := s.cgroups.Guard(s.cfg.CgroupParent, guard); err != nil {
		return nil, err
	}
	return s.cgroups.Create(s.helpers(), cgroup.Limits{SwapBytes: -1})
}

// helpers is the cgroup of the harness's own processes: bystander and controls.
func (s *Scene) helpers() string { return s.cfg.CgroupParent + "/helpers" }

// listen opens the two unix sockets that no job may reach.
func (s *Scene) listen() error {
	// The address of a socket holds 108 bytes (unix(7)), whatever the state
	// folder's name: it is bound through its folder's descriptor.
	name := filepath.Join(s.image.Layer, s.SocketPath)
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("listen on a path socket: %w", err)
	}
	defer dir.Close()
	file, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(name)))
	if err != nil {
		return fmt.Errorf("listen on a path socket: %w", err)
	}
	file.(*net.UnixListener).SetUnlinkOnClose(false) // it goes with the image
	s.listeners = append(s.listeners, file)
	if err := os.Chmod(name, 0o666); err != nil {
		return fmt.Errorf("listen on a path socket: %w", err)
	}
	return s.world.InPlace(func() error {
		l, err := net.Listen("unix", "@"+s.AbstractSocket)
		if err != nil {
			return fmt.Errorf("listen on an abstract socket: %w", err)
		}
		s.listeners = append(s.listeners, l)
		return nil
	})
}

// openRunner opens the runner under test with a provisional capability that
// names the run, and lives as its [mandate] does.
func (s *Scene) openRunner() error {
	var err error
	if _, s.key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return err
	}
	if s.runner, err = runsc.Open(s.cfg, s.options(s.cfg)); err != nil {
		return err
	}
	return nil
}

// logs outlive the run, since its report names them; the oldest are forgotten.
func (s *Scene) logs() string {
	if s.shop == nil { // a runner that is there to be killed keeps its own
		return ""
	}
	return filepath.Join(s.shop.dir, "logs")
}

func (s *Scene) options(cfg runsc.Config) runsc.Options {
	return runsc.Options{
		Broker: "harness " + s.Run, Key: s.key, Artifacts: s.shelf, Logs: s.logs(), Nice: s.nice,
		Resolve: func(image string) (string, error) {
			if image != s.image.Digest {
				return "", fmt.Errorf("%s is not the image of this run", image)
			}
			return s.image.Root, nil
		},
		Vouch: func() (sandbox.Capabilities, error) {
			until, err := s.mandate.end()
			if err != nil {
				return sandbox.Capabilities{}, err
			}
			return sandbox.Capabilities{
				SchemaVersion: sandbox.SchemaVersion, Runtime: sandbox.RuntimeRunsc, RuntimeDigest: s.identity.Digest,
				Profile: sandbox.ProfileDenyAll, Qualification: "provisional:" + s.Run,
				QualifiedUntil: until, Limits: cfg.Limits.Limits(),
			}, nil
		},
	}
}

// strike removes everything. It goes on after errors and joins them.
func (s *Scene) strike() error {
	var errs []error
	if s.runner != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what still runs is cancelled
		errs = append(errs, s.runner.Close(ctx))
	}
	if s.dir != "" {
		errs = append(errs, s.endAll())
	}
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	if s.world != nil {
		errs = append(errs, s.world.Close())
	}
	if s.image != nil {
		errs = append(errs, s.image.Close())
	}
	if s.dir != "" {
		errs = append(errs, sweepRun(s.dir, s.cgroups), s.removeGroups(), s.removeParent())
	}
	if s.shop != nil && !s.guest {
		errs = append(errs, s.shop.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up after the run: %w", err)
	}
	return nil
}

// endAll ends what still runs in the run's cgroup, helpers and what a job left,
// before the namespaces go that they live in.
func (s *Scene) endAll() error {
	g, err := s.cgroups.Open(s.cfg.CgroupParent)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepWithin)
	defer cancel()
	return g.Kill(ctx)
}

// removeGroups removes the run's cgroups, also where its journal could not be
// written.
func (s *Scene) removeGroups() error {
	g, err := s.cgroups.Open(s.cfg.CgroupParent)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepWithin)
	defer cancel()
	return g.Remove(ctx)
}

// removeParent removes the configured parent cgroup unless somebody uses it.
func (s *Scene) removeParent() error {
	g, err := s.cgroups.Open(path.Dir(s.cfg.CgroupParent))
	if err != nil {
		return err
	}
	return g.RemoveIfEmpty()
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
