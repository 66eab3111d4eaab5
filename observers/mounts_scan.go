package observers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// inputsPoint is where a job finds its inputs.
const inputsPoint = "/inputs"

// mountScan is one look at the mount tables and open files of some processes.
type mountScan struct {
	mounts   map[string]string // foreign mounts: identity to words
	folders  map[string]string // foreign open files and folders: identity to words
	root     bool              // a granted root file system was seen mounted
	writable bool              // and one of them could be written
	inputs   bool              // a granted folder was seen mounted where the job's inputs are
	given    bool              // and it could be written

	table jobMounts // what was seen mounted
	past  bool      // something open lies on a mount that only an earlier scan saw
}

// jobMounts are the mounts of the job's namespaces by their ids.
type jobMounts map[int]*mountinfo.Info

func (s *mountScan) clean() bool { return len(s.mounts) == 0 && len(s.folders) == 0 && !s.past }

// scanMounts looks at the processes whose folders below Host.Proc are given.
// own holds the runtime's own files, as [runtimeFiles] found them. past holds the
// mounts that earlier scans saw: what is open keeps its mount, and the mount its
// id, also when the namespace that showed it has ended. So it is when the gofer is
// gone before the sandbox.
func scanMounts(h Host, m *hostMounts, procs []string, own []string, past jobMounts) (*mountScan, error) {
	scan := &mountScan{mounts: map[string]string{}, folders: map[string]string{}, table: jobMounts{}}
	tables := map[string]bool{}
	for _, proc := range procs {
		// Processes of one namespace and root see one table.
		namespace, err := os.Readlink(filepath.Join(h.Proc, proc, "ns/mnt"))
		root, err2 := os.Readlink(filepath.Join(h.Proc, proc, "root"))
		if err = errors.Join(err, err2); err != nil {
			if processGone(h, proc, err) {
				continue
			}
			return nil, fmt.Errorf("read mount namespace of process %s: %w", proc, err)
		}
		if tables[namespace+root] {
			continue
		}
		table, err := readMountTable(h, proc)
		if err != nil {
			if processGone(h, proc, err) {
				continue
			}
			return nil, err
		}
		tables[namespace+root] = true
		for _, mount := range table {
			scan.table[mount.ID] = mount
			scan.judgeMount(m, proc, mount)
		}
	}
	for _, proc := range procs {
		things, err := openThings(h, proc, "root", "cwd")
		if err != nil {
			if processGone(h, proc, err) {
				continue
			}
			return nil, err
		}
		for _, thing := range things {
			table, id := scan.table, int(thing.stat.Mnt_id)
			if table[id] == nil && m.byID[id] == nil && past[id] != nil {
				table, scan.past = past, true
			}
			if !allowedOpen(h, m, table, thing, own) {
				scan.folders[strings.TrimSuffix(thing.link, " (deleted)")] = fmt.Sprintf("process %s keeps %s open (%s), outside the grants", proc, thing.link, thing.ref)
			}
		}
	}
	return scan, nil
}

func (s *mountScan) judgeMount(m *hostMounts, proc string, mount *mountinfo.Info) {
	source := spot{mount.Major, mount.Minor, mount.Root}
	switch {
	case m.granted(source):
		switch mount.Mountpoint {
		case "/":
			s.root = true
			s.writable = s.writable || !readOnly(mount)
		case inputsPoint:
			s.inputs = true
			s.given = s.given || !readOnly(mount)
		}
	case m.isScaffold(mount):
	default:
		s.mounts[source.String()+" "+mount.Mountpoint] = "process " + proc + " has " + m.words(source) +
			" (" + mount.FSType + ") mounted at " + mount.Mountpoint + ", outside the grants"
	}
}

// allowedOpen tells whether an open file or folder lies within the grants or is
// one of the few that the runtime keeps for itself. Everything else is foreign,
// also what can't be placed.
func allowedOpen(h Host, m *hostMounts, job jobMounts, o openThing, own []string) bool {
	id := int(o.stat.Mnt_id)
	if mount := job[id]; mount != nil {
		if m.granted(spot{mount.Major, mount.Minor, mount.Root}) || m.isScaffold(mount) {
			return true
		}
	}
	if mount := m.byID[id]; mount != nil {
		// On a mount of the host's own namespace the link is a host path.
		if m.granted(spotBehind(mount, strings.TrimSuffix(o.link, " (deleted)"))) {
			return true
		}
		for _, file := range own {
			if o.link == file || strings.HasSuffix(file, "*") && strings.HasPrefix(o.link, strings.TrimSuffix(file, "*")) {
				return true
			}
		}
	}
	return runtimeOwn(h, o)
}

// runtimeOwn is the list of what a runsc keeps open that leads to nothing of
// the host, each with its reason. What is closed before its file system was
// asked has the benefit of its name and kind.
func runtimeOwn(h Host, o openThing) bool {
	own, err := false, error(nil)
	switch kind := o.stat.Mode & unix.S_IFMT; {
	case kind == unix.S_IFCHR:
		// /dev/null stands in for the standard streams (null(4): 1, 3).
		return o.stat.Rdev_major == 1 && o.stat.Rdev_minor == 3
	case strings.HasPrefix(o.link, "/memfd:") && o.stat.Nlink == 0:
		// Guest memory and rings: memory files have no place in any folder.
		own, err = o.on(h, unix.TMPFS_MAGIC)
	case kind == unix.S_IFREG && (strings.HasSuffix(o.link, "/cpu.cfs_quota_us") || strings.HasSuffix(o.link, "/cpu.cfs_period_us") || strings.HasSuffix(o.link, "/cpu.max")):
		// Go's runtime watches its processor quota (GOMAXPROCS, Go 1.25).
		if own, err = o.on(h, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC); own {
			var writing bool
			writing, err = o.writing(h)
			own = err == nil && !writing
		}
	case kind == unix.S_IFDIR && o.stat.Mode&0o777 == 0o500:
		// The gofer opens its own descriptors again through /proc/PID/fd, the
		// only kind of proc folder with mode 0500.
		own, err = o.on(h, unix.PROC_SUPER_MAGIC)
	}
	return own || errors.Is(err, errChanged)
}

// runtimeFiles reads from the runtime's arguments which host files it works
// with for itself: the bundle's config.json and its logs. A name that ends in *
// stands for all files that begin so.
func runtimeFiles(cmdline []byte) []string {
	args := strings.Split(string(cmdline), "\x00")
	var files []string
	for i, arg := range args {
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if !filepath.IsAbs(value) {
			continue
		}
		switch name {
		case "bundle": // read by the gofer and the sandbox at their start
			files = append(files, filepath.Join(value, "config.json"))
		case "debug-log", "log", "panic-log": // a folder with a slash at its end, or a name with %PATTERN% in it
			pattern, _, patterned := strings.Cut(value, "%")
			if patterned || strings.HasSuffix(value, "/") {
				pattern += "*"
			}
			files = append(files, pattern)
		}
	}
	return files
}
