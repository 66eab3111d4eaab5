package observers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// sharedNamespace is the empty network namespace that runsc keeps bound in its
// state folder for the gofers of all containers (runsc/specutils,
// NullNetNSFilename): the runtime's, no job's.
const sharedNamespace = "null-netns"

// residueScan looks over one host for the things of one subject.
type residueScan struct {
	host    Host
	grounds Grounds
	subject Subject

	names      []string // words that make a name the subject's
	paths      []string // words that make a path the subject's
	known      []netID  // network namespaces that are not the job's
	namespaces []netID  // network namespaces that the job lived in
	spaces     []space  // where links and nft tables are looked for
}

func newResidueScan(h Host, g Grounds, s Subject) (residueScan, error) {
	r := residueScan{host: h, grounds: g, subject: s}
	r.names = []string{s.Container, s.Place}
	if group := path.Base(path.Clean("/" + s.Cgroup)); group != "/" {
		r.names = append(r.names, group)
	}
	r.paths = append([]string{s.Scratch}, r.names...)
	known, err := r.holders(nil)
	if err != nil {
		return r, err
	}
	r.known = known
	return r, nil
}

// run gives what is there, by kind, in words.
func (r *residueScan) run() (map[string][]string, error) {
	found := map[string][]string{}
	add := func(kind, format string, args ...any) {
		found[kind] = append(found[kind], fmt.Sprintf(format, args...))
	}
	_, lived := r.holders(func(what string) { add("namespaces", "%s", what) })
	err := errors.Join(lived, r.processes(add), r.mounts(add), r.cgroups(add), r.state(add), r.scratch(add))
	for _, space := range r.spaces {
		err = errors.Join(err, space.look(r.names, add))
	}
	return found, err
}

// holders reads which network namespaces processes and bind mounts keep alive,
// and tells of those that the job lived in. With nobody to tell it lists all of
// them.
func (r *residueScan) holders(tell func(string)) (all []netID, err error) {
	shared, seen := map[uint64]bool{}, map[uint64]bool{}
	see := func(inode uint64, file, holder string) {
		switch {
		case tell == nil && !seen[inode]:
			seen[inode] = true
			all = append(all, netIDOf(file, inode))
		case tell != nil && !shared[inode] && r.lived(inode, file):
			tell(fmt.Sprintf("network namespace %d, kept by %s", inode, holder))
		}
	}
	mounts, err := r.table()
	if err != nil {
		return nil, err
	}
	bound := map[uint64]string{}
	for _, mount := range mounts {
		if inode, err := parseNetInode(mount.Root); mount.FSType == "nsfs" && err == nil {
			bound[inode] = mount.Mountpoint
			shared[inode] = shared[inode] || path.Base(mount.Mountpoint) == sharedNamespace
		}
	}
	for inode, point := range bound {
		see(inode, point, "the mount at "+point)
	}
	processes, err := os.ReadDir(r.host.Proc)
	if err != nil {
		return nil, fmt.Errorf("scan network namespaces: %w", err)
	}
	for _, process := range processes {
		if _, err := strconv.Atoi(process.Name()); err != nil {
			continue
		}
		file := filepath.Join(r.host.Proc, process.Name(), "ns", "net")
		if inode, err := netInode(file); err == nil { // else it has ended
			if tell != nil && r.sibling(process.Name(), inode) {
				continue // the kernel numbers namespaces anew: this one is that job's
			}
			see(inode, file, "process "+process.Name())
		}
	}
	return all, nil
}

// lived tells whether the job lived in the namespace behind the file.
func (r *residueScan) lived(inode uint64, file string) bool {
	if !slices.ContainsFunc(r.namespaces, func(n netID) bool { return n.inode == inode }) {
		return false // most are, and a cookie costs
	}
	return slices.ContainsFunc(r.namespaces, netIDOf(file, inode).same)
}

// livedIn notes a namespace of the job, unless it was there before.
func (r *residueScan) livedIn(inode uint64, file string) {
	if n := netIDOf(file, inode); !slices.ContainsFunc(r.known, n.same) {
		r.namespaces = append(r.namespaces, n)
	}
}

// sibling tells whether a process in a namespace of that number is in the cgroup
// of another job of the run.
func (r *residueScan) sibling(pid string, inode uint64) bool {
	if !slices.ContainsFunc(r.namespaces, func(n netID) bool { return n.inode == inode }) {
		return false
	}
	groups, err := readSmall(filepath.Join(r.host.Proc, pid, "cgroup"))
	return err == nil && r.grounds.Cgroup != "" &&
		memberOf([]byte(groups), []byte(r.grounds.Cgroup)) && !memberOf([]byte(groups), []byte(r.subject.Cgroup))
}

func (r *residueScan) table() ([]*mountinfo.Info, error) {
	data, err := os.ReadFile(filepath.Join(r.host.Proc, "self", "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("scan mounts: %w", err)
	}
	mounts, err := mountinfo.GetMountsFromReader(bytes.NewReader(data), nil)
	if err != nil {
		return nil, fmt.Errorf("scan mounts: %w", err)
	}
	return mounts, nil
}

// processes finds the members of the job's cgroup and those whose command line
// names the container. The observer "processes" looks deeper.
func (r *residueScan) processes(add func(string, string, ...any)) error {
	members := map[int]bool{}
	if r.subject.Cgroup != "" {
		pids, err := jobPIDs(r.host, r.subject.Cgroup)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, pid := range pids {
			members[pid] = true
			add("processes", "process %d in cgroup %s", pid, r.subject.Cgroup)
		}
	}
	entries, err := os.ReadDir(r.host.Proc)
	if err != nil {
		return fmt.Errorf("scan processes: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || members[pid] {
			continue
		}
		if line, err := readSmall(filepath.Join(r.host.Proc, entry.Name(), "cmdline")); err == nil && mentions(line, r.subject.Container) {
			add("processes", "process %d: %s", pid, strings.TrimSpace(strings.ReplaceAll(line, "\x00", " ")))
		}
	}
	return nil
}

// mounts finds mounts whose point, root or source names the job. The bind files
// of the harness's own places are no residue of a job; those of namespaces
// count under "namespaces".
func (r *residueScan) mounts(add func(string, string, ...any)) error {
	mounts, err := r.table()
	if err != nil {
		return err
	}
	own := map[string]bool{}
	for _, place := range r.grounds.Places {
		own[place] = true
	}
	for _, mount := range mounts {
		inode, err := parseNetInode(mount.Root)
		if own[mount.Mountpoint] || err == nil && r.lived(inode, mount.Mountpoint) {
			continue
		}
		for _, word := range r.paths {
			if mentions(mount.Mountpoint, word) || mentions(mount.Root, word) || mentions(mount.Source, word) {
				add("mounts", "mount at %s (%s)", mount.Mountpoint, mount.FSType)
				break
			}
		}
	}
	return nil
}

// cgroups finds the job's group, and any named after it, in every hierarchy.
func (r *residueScan) cgroups(add func(string, string, ...any)) error {
	own := path.Clean("/" + r.subject.Cgroup)
	err := filepath.WalkDir(r.host.Cgroup, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case own != "/" && strings.HasSuffix(name, own) || namedAfter(entry.Name(), r.names):
			add("cgroups", "cgroup %s", name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("scan cgroups: %w", err)
	}
	return nil
}

// state finds entries of the runtime's state folders, and bound unix sockets,
// named after the job. A folder that is not there holds nothing.
func (r *residueScan) state(add func(string, string, ...any)) error {
	for _, folder := range r.grounds.State {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("scan runtime state: %w", err)
		}
		for _, entry := range entries {
			if namedAfter(entry.Name(), r.names) {
				add("state", "runtime state %s", filepath.Join(folder, entry.Name()))
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(r.host.Proc, "net", "unix"))
	if err != nil {
		return fmt.Errorf("scan unix sockets: %w", err)
	}
	for line := range strings.Lines(string(data)) { // proc_net(5): the eighth field is the path
		if fields := strings.Fields(line); len(fields) > 7 && namedAfter(path.Base(fields[7]), r.names) {
			add("state", "unix socket %s", fields[7])
		}
	}
	return nil
}

func (r *residueScan) scratch(add func(string, string, ...any)) error {
	if r.subject.Scratch == "" {
		return nil
	}
	_, err := os.Lstat(r.subject.Scratch)
	switch {
	case err == nil:
		add("scratch", "scratch %s", r.subject.Scratch)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for scratch: %w", err)
	}
	return nil
}

// readLink and readSmall make one system call less than their counterparts in
// os: a scan calls them once a process.
func readLink(name string) (string, error) {
	var buf [64]byte
	n, err := unix.Readlink(name, buf[:])
	if err != nil {
		return "", &os.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(buf[:n]), nil
}

// readSmall reads the first 4 KiB of a file of /proc or a cgroup.
func readSmall(name string) (string, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: name, Err: err}
	}
	var buf [4096]byte
	n, err := unix.Read(fd, buf[:])
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return "", &os.PathError{Op: "read", Path: name, Err: err}
	}
	return string(buf[:n]), nil
}
