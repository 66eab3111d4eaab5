package suites

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/internal/unmount"
)

// workshop is the harness's own folder below the runner's state folder. One
// harness works in it at a time; what an earlier one left is removed first.
type workshop struct {
	dir  string
	lock *flock.Flock
}

// openWorkshop takes the folder and removes what a crash left: whatever stands
// in a journal, and nothing else.
func openWorkshop(stateDir string, h *cgroup.Hierarchy) (*workshop, error) {
	w := &workshop{dir: filepath.Join(stateDir, "harness")}
	if err := os.MkdirAll(w.dir, 0o711); err != nil {
		return nil, fmt.Errorf("state_dir: %w", err)
	}
	w.lock = flock.New(filepath.Join(w.dir, "lock"))
	ok, err := w.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", w.lock.Path(), err)
	}
	if !ok {
		return nil, fmt.Errorf("another harness runs with this state_dir (it holds %s): wait for it to end, or give this one another state_dir", w.lock.Path())
	}
	runs, err := os.ReadDir(w.runs())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, w.lock.Unlock())
	}
	var errs []error
	for _, r := range runs {
		errs = append(errs, sweepRun(filepath.Join(w.runs(), r.Name()), h))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(fmt.Errorf("remove what an earlier run left: %w", err), w.lock.Unlock())
	}
	return w, nil
}

func (w *workshop) runs() string { return filepath.Join(w.dir, "runs") }

func (w *workshop) close() error { return w.lock.Unlock() }

// journal notes on the disk what is about to be created.
type journal struct {
	mu sync.Mutex
	f  *os.File
}

type entry struct {
	Kind string `json:"kind"` // cgroup, mount, netns, link, folder, process
	What string `json:"what"`
}

func newJournal(dir string) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make journal: %w", err)
	}
	return &journal{f: f}, nil
}

// Record writes one line and waits until it is on the disk.
func (j *journal) Record(kind, what string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	data, err := json.Marshal(entry{kind, what})
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if _, err := j.f.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := unix.Fdatasync(int(j.f.Fd())); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// readJournal returns what is noted. A last line that a crash cut short noted
// something that was not created yet.
func readJournal(dir string) ([]entry, error) {
	f, err := os.Open(filepath.Join(dir, "journal"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []entry
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			out = append(out, e)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return out, nil
}

// sweepWithin bounds the removal of one run's remains.
const sweepWithin = 15 * time.Second

// sweepRun removes what one run made: first what runs, then what is mounted,
// then the rest, and the journal with the folder at the very end, so that a
// sweep which is cut short is made again.
func sweepRun(dir string, h *cgroup.Hierarchy) error {
	entries, err := readJournal(dir)
	if err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepWithin)
	defer cancel()
	var errs []error
	groups := func(do func(*cgroup.Group) error) {
		for _, e := range entries {
			if e.Kind != "cgroup" {
				continue
			}
			g, err := h.Open(e.What)
			if err == nil {
				err = do(g)
			}
			errs = append(errs, err)
		}
	}
	groups(func(g *cgroup.Group) error { return g.Kill(ctx) })
	errs = append(errs, unmount.Below(ctx, dir))
	groups(func(g *cgroup.Group) error { return g.Remove(ctx) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	return unmount.Remove(ctx, dir)
}
