package observers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mounts is the observer "mounts": which host folders the job's processes can
// reach through their mount tables and through what they keep open (step 7 and
// 8 of the attempts).
//
// Only processes that have locked themselves in are judged: those with a
// seccomp filter that the harness doesn't have (proc_pid_status(5), field
// Seccomp_filters). The runtime's gofer and sandbox load it as the last step
// before they serve the guest, when their pivot_root and chroot are behind
// them; before it their tables still show the whole host and mean nothing. The
// sandbox makes its first stub, already locked in, before that step, so a mount
// namespace is judged only while no process in it is still without a filter.
// The host's own namespace is the exception, because the runtime's command line
// ("runsc run") stays there and never loads one: it runs no guest code. Unless
// two namespaces were judged, the gofer's and the sandbox's, and one showed the
// root file system, the observation says that it was lost.
//
// Not seen: a mount that a process could reach only after leaving its chroot,
// and files that are mapped but no longer open.
type Mounts struct{ host Host }

// NewMounts returns the observer. It needs statx(2) with mount ids: Linux 5.8.
func NewMounts(h Host) *Mounts { return &Mounts{host: h} }

// Name returns "mounts".
func (*Mounts) Name() string { return "mounts" }

// Watch arms the observer. The observation's values, all counts, are
//
//   - "foreign_mounts": mounts outside the grants at the worst sample,
//   - "foreign_folders": open host files and folders outside the grants,
//   - "root_writable": 1 when a granted root file system could be written,
//   - "inputs_writable": 1 when the granted folder at /inputs could be written;
//     absent when none was seen mounted there,
//   - "judged": how many mount namespaces were judged so far.
//
// Before is 0 (there is no job yet), Worst the largest sample, After the last.
// The job's standard streams must be pipes, or lie within the grants.
func (o *Mounts) Watch(_ context.Context, s Subject) (Watch, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_MNT_ID, &st); err != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return nil, errors.Join(errors.New("stat mount ids: this kernel has none (needs Linux 5.8)"), err)
	}
	own, err := seccompFilters(o.host, "self")
	if err != nil {
		return nil, err
	}
	home, err := os.Readlink(filepath.Join(o.host.Proc, "self/ns/mnt"))
	if err != nil {
		return nil, fmt.Errorf("read own mount namespace: %w", err)
	}
	m, err := readHostMounts(o.host, s.Grants)
	if err != nil {
		return nil, err
	}
	w := &mountsWatch{host: o.host, subject: s, mounts: m, filters: own, home: home}
	w.known, w.judged, w.told, w.past = map[int]jobProcess{}, map[string]bool{}, map[string]bool{}, jobMounts{}
	w.obs = Observation{Observer: o.Name(), Place: s.Place, Values: map[string]Reading{}}
	return w, nil
}

// jobProcess is what is known of one process of the job.
type jobProcess struct {
	namespace string // its mount namespace
	locked    bool   // it has a seccomp filter of its own, which it can't lose again
}

type mountsWatch struct {
	host    Host
	subject Subject
	mounts  *hostMounts
	filters int    // the harness's own seccomp filters, which every child inherits
	home    string // the harness's own mount namespace
	known   map[int]jobProcess
	judged  map[string]bool // the mount namespaces judged so far
	own     []string        // the runtime's own files
	told    map[string]bool // what Found says already
	root    bool            // the root file system was seen
	past    jobMounts       // the mounts that were seen so far
	obs     Observation
}

// Sample looks at every process of the job once.
func (w *mountsWatch) Sample() {
	pids, err := jobPIDs(w.host, w.subject.Cgroup)
	if errors.Is(err, fs.ErrNotExist) {
		return // the job hasn't started, or its cgroup is gone
	}
	if err != nil {
		w.lose(err)
		return
	}
	w.obs.Samples++
	judged := w.lockedIn(pids)
	scan, err := w.look(judged)
	if err != nil {
		w.lose(err)
		return
	}
	w.root = w.root || scan.root
	maps.Copy(w.past, scan.table)
	w.count("judged", len(w.judged))
	w.count("foreign_mounts", len(scan.mounts))
	w.count("foreign_folders", len(scan.folders))
	w.writable("root_writable", scan.writable, "the job's root file system is mounted writable")
	if scan.inputs {
		w.writable("inputs_writable", scan.given, "the job's inputs are mounted writable")
	}
	for _, found := range []map[string]string{scan.mounts, scan.folders} {
		for _, key := range slices.Sorted(maps.Keys(found)) {
			w.tell(key, found[key])
		}
	}
}

// look scans, and when something new seems foreign reads the host's table again
// and scans once more: a grant may have been made after the watch was armed,
// and a descriptor may have been replaced while it was looked at. What both
// scans show is foreign. The same is done when something lies on a mount that only
// an earlier scan saw: the host may have given the mount's id again.
func (w *mountsWatch) look(pids []int) (*mountScan, error) {
	var procs []string
	for _, pid := range distinctFiles(w.host, pids) {
		procs = append(procs, strconv.Itoa(pid))
	}
	first, err := scanMounts(w.host, w.mounts, procs, w.own, w.past)
	if err != nil || first.clean() {
		return first, err
	}
	if w.mounts, err = readHostMounts(w.host, w.subject.Grants); err != nil {
		return nil, err
	}
	scan, err := scanMounts(w.host, w.mounts, procs, w.own, w.past)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(scan.mounts, func(key, _ string) bool { return first.mounts[key] == "" })
	maps.DeleteFunc(scan.folders, func(key, _ string) bool { return first.folders[key] == "" })
	return scan, nil
}

// lockedIn returns those of pids that are to be judged now.
func (w *mountsWatch) lockedIn(pids []int) []int {
	maps.DeleteFunc(w.known, func(pid int, _ jobProcess) bool { return !slices.Contains(pids, pid) })
	starting := map[string]bool{}
	for _, pid := range pids {
		known := w.known[pid]
		if !known.locked {
			if known = w.ask(pid); known.locked {
				w.learnFiles(pid) // not before: it may still be what made it, under that one's words
			}
			w.known[pid] = known
		}
		if !known.locked && known.namespace != w.home {
			starting[known.namespace] = true
		}
	}
	var locked []int
	for _, pid := range pids {
		if known := w.known[pid]; known.locked && !starting[known.namespace] {
			locked = append(locked, pid)
			w.judged[known.namespace] = true
		}
	}
	return locked
}

// ask reads the namespace after the filters, so that the namespace of a process
// that is found locked in is the one it stays in.
func (w *mountsWatch) ask(pid int) jobProcess {
	proc := strconv.Itoa(pid)
	filters, err := seccompFilters(w.host, proc)
	namespace, linkErr := os.Readlink(filepath.Join(w.host.Proc, proc, "ns/mnt"))
	if err = errors.Join(err, linkErr); err != nil {
		if !processGone(w.host, proc, err) {
			w.lose(err)
		}
		return jobProcess{namespace: w.home} // gone: it holds up nobody
	}
	return jobProcess{namespace: namespace, locked: filters > w.filters}
}

// learnFiles notes which files the runtime was told to work with.
func (w *mountsWatch) learnFiles(pid int) {
	cmdline, err := os.ReadFile(filepath.Join(w.host.Proc, strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return // ended meanwhile; without its words its files are foreign
	}
	w.own = append(w.own, runtimeFiles(cmdline)...)
	slices.Sort(w.own)
	w.own = slices.Compact(w.own)
}

func (w *mountsWatch) Ended() {}

func (w *mountsWatch) Stored() Observation {
	switch {
	case w.obs.Lost != "":
	case len(w.judged) < 2:
		w.obs.Lost = fmt.Sprintf("of gofer and sandbox only %d were seen after they had locked themselves in", len(w.judged))
	case !w.root:
		w.obs.Lost = "no process of the job showed the mount of a granted root file system"
	}
	return w.obs
}

func (w *mountsWatch) count(name string, n int) {
	r := w.obs.Values[name]
	w.obs.Values[name] = Reading{Worst: max(r.Worst, int64(n)), After: int64(n), Unit: "count"}
}

func (w *mountsWatch) writable(name string, yes bool, words string) {
	n := 0
	if yes {
		n = 1
		w.tell(name, words)
	}
	w.count(name, n)
}

func (w *mountsWatch) tell(key, words string) {
	if !w.told[key] {
		w.told[key] = true
		w.obs.Find(words)
	}
}

func (w *mountsWatch) lose(err error) {
	if w.obs.Lost == "" {
		w.obs.Lost = err.Error()
	}
}

// seccompFilters returns how many filters a process runs under. Kernels before
// 5.9 tell only the mode; there mode 2 counts as one filter.
func seccompFilters(h Host, proc string) (int, error) {
	status, err := os.ReadFile(filepath.Join(h.Proc, proc, "status"))
	if err != nil {
		return 0, fmt.Errorf("read seccomp state: %w", err)
	}
	filters := 0
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch {
		case name == "Seccomp" && value == "2":
			filters = 1
		case name == "Seccomp_filters":
			return strconv.Atoi(value)
		}
	}
	return filters, nil
}

// jobPIDs lists the processes of a cgroup and of those below it, ascending. On
// cgroup v1 they are gathered over all controllers, because a process may have
// been placed in one and not yet in another. It returns fs.ErrNotExist when no
// hierarchy has the cgroup.
func jobPIDs(h Host, cgroup string) ([]int, error) {
	if filepath.Clean("/"+cgroup) == "/" {
		return nil, errors.New("list processes of the job: no cgroup is named")
	}
	roots, err := filepath.Glob(filepath.Join(h.Cgroup, "*", cgroup)) // v1, one folder a controller
	if err != nil {
		return nil, fmt.Errorf("list processes of cgroup %s: %w", cgroup, err)
	}
	roots = append(roots, filepath.Join(h.Cgroup, cgroup)) // v2
	seen, exists := map[int]bool{}, false
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed meanwhile, or never there
			}
			if err != nil || entry.Name() != "cgroup.procs" {
				return err
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
				return nil // ENODEV: the cgroup was removed after it was opened
			}
			if err != nil {
				return err
			}
			exists = true
			for field := range strings.FieldsSeq(string(data)) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					return fmt.Errorf("parse %s: %w", path, err)
				}
				seen[pid] = true
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list processes of cgroup %s: %w", cgroup, err)
		}
	}
	if !exists {
		return nil, fmt.Errorf("list processes of cgroup %s: %w", cgroup, fs.ErrNotExist)
	}
	return slices.Sorted(maps.Keys(seen)), nil
}
