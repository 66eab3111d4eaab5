package observers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// spot is a host folder or file told apart from all others, by whatever mount
// it is reached: the file system's device numbers and the path within it
// (fields 3 and 4 of proc_pid_mountinfo(5)).
type spot struct {
	major, minor int
	path         string
}

// String gives device and path: "254:0:/var/lib".
func (s spot) String() string {
	return strconv.Itoa(s.major) + ":" + strconv.Itoa(s.minor) + ":" + s.path
}

func (s spot) within(outer spot) bool {
	return s.major == outer.major && s.minor == outer.minor && pathWithin(s.path, outer.path)
}

func pathWithin(path, outer string) bool {
	rest, below := strings.CutPrefix(path, outer)
	return below && (outer == "/" || rest == "" || rest[0] == '/')
}

// hostMounts is the host's own mount table and the spots of the job's grants.
type hostMounts struct {
	table []*mountinfo.Info
	byID  map[int]*mountinfo.Info
	roots map[spot]string // where each spot is mounted
	spots []spot
}

// readHostMounts reads the table of the program's own mount namespace and finds
// each grant in it. A grant that isn't there yet is left out: the table is read
// again before anything is called foreign.
//
// A grant covers its own file system only. What the host mounts beneath it is
// foreign unless it's granted too.
func readHostMounts(h Host, grants []string) (*hostMounts, error) {
	table, err := readMountTable(h, "self")
	if err != nil {
		return nil, err
	}
	m := &hostMounts{table: table, byID: make(map[int]*mountinfo.Info, len(table)), roots: make(map[spot]string, len(table))}
	for _, mount := range table {
		m.byID[mount.ID] = mount
		if root := (spot{mount.Major, mount.Minor, mount.Root}); m.roots[root] == "" {
			m.roots[root] = mount.Mountpoint
		}
	}
	for _, grant := range grants {
		real, err := filepath.EvalSymlinks(grant)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("resolve grant: %w", err)
		}
		if s, ok := m.find(real); ok {
			m.spots = append(m.spots, s)
		}
	}
	return m, nil
}

func readMountTable(h Host, proc string) ([]*mountinfo.Info, error) {
	f, err := os.Open(filepath.Join(h.Proc, proc, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	table, err := mountinfo.GetMountsFromReader(f, nil)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read mount table of process %s: %w", proc, err)
	}
	return table, nil
}

// find returns the spot behind a host path: that of the mount with the longest
// mount point above it, the newest of several stacked on one point.
func (m *hostMounts) find(path string) (spot, bool) {
	var best *mountinfo.Info
	for _, mount := range m.table {
		if pathWithin(path, mount.Mountpoint) && (best == nil || len(mount.Mountpoint) >= len(best.Mountpoint)) {
			best = mount
		}
	}
	if best == nil {
		return spot{}, false
	}
	return spotBehind(best, path), true
}

// spotBehind returns the spot of a path at or below a mount's mount point.
func spotBehind(mount *mountinfo.Info, path string) spot {
	rel := strings.TrimPrefix(path, strings.TrimSuffix(mount.Mountpoint, "/"))
	return spot{mount.Major, mount.Minor, filepath.Join(mount.Root, rel)}
}

func (m *hostMounts) granted(s spot) bool {
	for _, grant := range m.spots {
		if s.within(grant) {
			return true
		}
	}
	return false
}

// words names a spot by a host path that leads to it, or by device and path
// where no host mount shows it.
func (m *hostMounts) words(s spot) string {
	for root := s; ; root.path = filepath.Dir(root.path) {
		if mountpoint := m.roots[root]; mountpoint != "" {
			return filepath.Join(mountpoint, strings.TrimPrefix(s.path, strings.TrimSuffix(root.path, "/")))
		}
		if root.path == "/" || !strings.HasPrefix(root.path, "/") {
			return s.String()
		}
	}
}

// scaffold lists the mounts that the runtime makes for itself, by the name it
// gives as source, each with its reason. They count only when they are a file
// system of their own, one that the host's table doesn't show.
var scaffold = map[string]string{
	"runsc-root": "the empty tmpfs that the sandbox process lives in and that the gofer hangs the job's root in",
	"runsc-proc": "builds before directfs: the gofer's own proc, for its own descriptors",
}

func (m *hostMounts) isScaffold(mount *mountinfo.Info) bool {
	if scaffold[mount.Source] == "" || mount.Root != "/" || (mount.FSType != "tmpfs" && mount.FSType != "proc") {
		return false
	}
	for _, own := range m.table {
		if own.Major == mount.Major && own.Minor == mount.Minor {
			return false
		}
	}
	return true
}

// readOnly tells whether a mount refuses writes, by itself or by its file
// system (EROFS in both cases, mount(2)).
func readOnly(mount *mountinfo.Info) bool {
	return hasOption(mount.Options, "ro") || hasOption(mount.VFSOptions, "ro")
}

func hasOption(options, want string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == want {
			return true
		}
	}
	return false
}
