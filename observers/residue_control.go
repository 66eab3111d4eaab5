package observers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/cgroup"
)

// Control leaves one harmless thing of each kind, in throwaway folders and a
// throwaway network namespace, so that watches of jobs see none of it. The scan
// must find each of them, and nothing any more once they are removed.
func (r *Residue) Control(ctx context.Context) (c Control) {
	c = Control{
		Observer: r.Name(), Place: "host",
		Effect: "left one marked process, mount, network namespace, link, cgroup, state entry, nft table and scratch folder",
		Want:   "each of them found while there, none once removed",
	}
	if r.grounds.Spawn == nil {
		return failed(c, errors.New("leave a marked process: nothing to start it with"))
	}
	id := "control-" + strings.ToLower(rand.Text())
	dir, err := os.MkdirTemp(r.grounds.Scratch, "residue-")
	if err != nil {
		return failed(c, fmt.Errorf("make throwaway folder: %w", err))
	}
	left := residueLeft{id: id, dir: dir, space: filepath.Join(dir, "space")}
	defer func() {
		if err := errors.Join(left.remove(), os.RemoveAll(dir)); err != nil {
			c = failed(c, errors.Join(errors.New(c.Reason), err))
		}
	}()
	scan, found, err := r.control(ctx, &left)
	if err != nil {
		return failed(c, err)
	}
	var seen, missed []string
	for _, kind := range residueKinds {
		seen = append(seen, fmt.Sprintf("%s %d", kind, len(found[kind])))
		if len(found[kind]) == 0 {
			missed = append(missed, kind)
		}
	}
	c.Seen = strings.Join(seen, ", ")
	if len(missed) > 0 {
		return failed(c, fmt.Errorf("the scan missed what was left: %s", strings.Join(missed, ", ")))
	}
	if err := left.remove(); err != nil {
		return failed(c, err)
	}
	found, err = scan.run()
	if err != nil {
		return failed(c, err)
	}
	for _, kind := range residueKinds {
		if len(found[kind]) > 0 {
			return failed(c, fmt.Errorf("the scan still finds what was removed: %s", strings.Join(found[kind], ", ")))
		}
	}
	c.Passed = true
	return c
}

// control arms a scan, leaves one thing of each kind, and looks.
func (r *Residue) control(ctx context.Context, left *residueLeft) (*residueScan, map[string][]string, error) {
	if err := left.namespace(); err != nil {
		return nil, nil, err
	}
	grounds := r.grounds
	grounds.State, grounds.Places = []string{left.dir}, []string{left.space}
	scan, err := newResidueScan(r.host, grounds, Subject{
		Container: left.id, Cgroup: r.grounds.Cgroup + "/" + left.id, Scratch: filepath.Join(left.dir, "scratch"),
	})
	if err == nil {
		scan.spaces, err = openSpaces(grounds.Places)
	}
	if err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	if err := unix.Stat(left.space, &st); err != nil {
		return nil, nil, fmt.Errorf("stat %s: %w", left.space, err)
	}
	scan.namespaces = append(scan.namespaces, netIDOf(left.space, st.Ino))
	if err := left.rest(ctx, r.host, r.grounds.Spawn, scan.subject); err != nil {
		return nil, nil, err
	}
	found, err := scan.run()
	scan.spaces = scan.spaces[:1] // the throwaway namespace goes with all that is in it
	return &scan, found, err
}

// residueLeft is what a control left and how to take it back, last first.
type residueLeft struct {
	id    string
	dir   string
	space string // bind file of the throwaway network namespace
	undo  []func() error
}

func (l *residueLeft) remove() (err error) {
	for len(l.undo) > 0 {
		last := l.undo[len(l.undo)-1]
		l.undo = l.undo[:len(l.undo)-1]
		err = errors.Join(err, last())
	}
	return err
}

// namespace makes a network namespace and binds it.
func (l *residueLeft) namespace() error {
	if err := os.WriteFile(l.space, nil, 0o600); err != nil {
		return fmt.Errorf("make bind file: %w", err)
	}
	done := make(chan error)
	go onSideThread(func() {
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount("/proc/thread-self/ns/net", l.space, "", unix.MS_BIND, "")
		}
		done <- err
	})
	if err := <-done; err != nil {
		return fmt.Errorf("make throwaway network namespace: %w", err)
	}
	l.undo = append(l.undo, func() error { return detach(l.space) })
	return nil
}

// rest leaves one thing of every other kind.
func (l *residueLeft) rest(ctx context.Context, h Host, spawn Spawner, s Subject) error {
	if err := l.insideSpace(); err != nil {
		return err
	}
	if err := os.Mkdir(s.Scratch, 0o700); err != nil {
		return fmt.Errorf("make throwaway scratch: %w", err)
	}
	l.undo = append(l.undo, func() error { return os.Remove(s.Scratch) })
	if err := unix.Mount("residue", s.Scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k"); err != nil {
		return fmt.Errorf("mount throwaway scratch: %w", err)
	}
	l.undo = append(l.undo, func() error { return detach(s.Scratch) })
	state := filepath.Join(l.dir, l.id+"_sandbox:"+l.id+".state") // as runsc names its own
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		return fmt.Errorf("make throwaway state: %w", err)
	}
	l.undo = append(l.undo, func() error { return os.Remove(state) })
	tree, err := cgroup.Detect(h.Cgroup)
	if err != nil {
		return err
	}
	group, err := tree.Create(s.Cgroup, cgroup.Limits{})
	if err != nil {
		return err
	}
	l.undo = append(l.undo, func() error { return clearGroup(ctx, group) })
	child, err := spawn.Spawn(ctx, Child{Act: ActSleep, Args: []string{l.id}})
	if err != nil {
		return fmt.Errorf("leave a marked process: %w", err)
	}
	l.undo = append(l.undo, func() error { reap(child); return nil })
	return nil
}

// insideSpace makes a link and an nft table in the throwaway namespace.
func (l *residueLeft) insideSpace() error {
	return space{path: l.space}.enter(func(links *netlink.Handle, conn *nftables.Conn) error {
		if err := links.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "left0", TxQLen: -1}, PeerName: "left1"}); err != nil {
			return fmt.Errorf("make throwaway link: %w", err)
		}
		conn.AddTable(&nftables.Table{Name: "left", Family: nftables.TableFamilyINet})
		if err := conn.Flush(); err != nil {
			return fmt.Errorf("make throwaway nft table: %w", err)
		}
		return nil
	})
}

// detach unmounts what may still be in use elsewhere, such as in the mount
// namespace of a sandbox that started meanwhile.
func detach(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}
