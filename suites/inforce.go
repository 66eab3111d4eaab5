package suites

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// readback is what was read back from a running sandbox: what is in force, and
// not what a file says. It is recorded, not judged: the trials judge. All of it
// is written so that two runs of the same worker compare equal.
type readback struct {
	mu   sync.Mutex
	cell string // whose sandbox it is; empty: none was read yet
	seen map[string]string
	open map[string]*descriptors // by subject
}

// referenceCell is the job that is read back when the run has it, so that two
// runs read the same: it is granted nothing, and lives for long enough to be
// looked at. In a run without it, it is the first without lifts.
const referenceCell = "census"

func (i *readback) values() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := map[string]string{}
	maps.Copy(out, i.seen)
	for subject, d := range i.open {
		out[subject+": descriptors"] = d.text()
	}
	return out
}

// The processes of the runtime that outlive its start, by the name that each
// gives itself.
var subjects = []struct{ argv0, name string }{{"runsc-sandbox", "sandbox process"}, {"runsc-gofer", "gofer process"}}

// read takes the values of a job without lifts once, and its open descriptors
// each time: they come and go, and those of the whole time compare equal.
func (i *readback) read(w *inForceWatch) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cell != "" && i.cell != w.cell && w.cell != referenceCell {
		return
	}
	found := w.processes()
	sandbox, ok := found["runsc-sandbox"]
	if !ok {
		return
	}
	if i.cell != w.cell {
		i.cell, i.seen, i.open = w.cell, map[string]string{}, map[string]*descriptors{}
		inGroups(i.seen, w.host, sandbox.pid, w.traces.Cgroup)
	}
	for _, s := range subjects {
		p, ok := found[s.argv0]
		if !ok {
			continue
		}
		if _, known := i.seen[s.name+": Seccomp"]; !known {
			w.status(i.seen, s.name, p)
		}
		if _, known := i.seen[s.name+": program"]; !known {
			if program := w.program(p.pid); program != "" {
				i.seen[s.name+": program"] = program
			}
		}
		if w.cell == referenceCell {
			if i.open[s.name] == nil {
				i.open[s.name] = &descriptors{}
			}
			i.open[s.name].add(filepath.Join(w.host.Proc, strconv.Itoa(p.pid)), w.traces)
		}
	}
}

// inForceName is the key under which it is sampled; no want names it.
const inForceName = "in force"

// inForceWatch reads what is in force while the job runs.
type inForceWatch struct {
	to      *readback
	cell    string
	host    observers.Host
	group   *cgroup.Group
	traces  runsc.Traces
	runtime runsc.Identity
}

// Sample implements [observers.Watch].
func (w *inForceWatch) Sample() { w.to.read(w) }

// Ended implements [observers.Watch]; nothing runs any more.
func (w *inForceWatch) Ended() {}

// Stored implements [observers.Watch]; what is read back stands in the report.
func (w *inForceWatch) Stored() observers.Observation { return observers.Observation{} }

// locked is a process of the runtime that has taken its own filter.
type locked struct {
	pid     int
	command []byte
	status  map[string]string
}

// processes finds the job's processes of the runtime by the name that they give
// themselves, those that have locked themselves in (seccomp(2), mode 2). They
// are looked for in the job's cgroup, and where they are not in it, in the whole
// machine by the job's names: then that is what is told.
func (w *inForceWatch) processes() map[string]locked {
	pids, err := w.group.Procs()
	found := map[string]locked{}
	if err == nil {
		w.among(found, pids, false)
	}
	if _, ok := found["runsc-sandbox"]; !ok && len(pids) == 0 {
		w.among(found, numbered(w.host.Proc), true)
	}
	return found
}

func (w *inForceWatch) among(found map[string]locked, pids []int, named bool) {
	for _, pid := range pids {
		dir := filepath.Join(w.host.Proc, strconv.Itoa(pid))
		cmd, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		argv0, _, ok := bytes.Cut(cmd, []byte{0})
		if err != nil || !ok || named && !bytes.Contains(cmd, []byte(w.traces.Container)) {
			continue
		}
		for _, s := range subjects {
			if string(argv0) != s.argv0 {
				continue
			}
			if status := fields(filepath.Join(dir, "status")); status["Seccomp"] == "2" {
				found[s.argv0] = locked{pid, cmd, status}
			}
		}
	}
}

// numbered lists the processes of a procfs.
func numbered(proc string) (out []int) {
	d, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer d.Close() // read only
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// status takes what the kernel says of the process itself (proc_pid_status(5),
// namespaces(7)).
func (w *inForceWatch) status(seen map[string]string, subject string, p locked) {
	for _, k := range []string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"} {
		seen[subject+": "+k] = p.status[k]
	}
	seen[subject+": flags"] = bootFlags(p.command, w.traces)
	for _, n := range []string{"pid", "mnt", "net", "ipc", "uts", "user", "cgroup", "time"} {
		seen[subject+": "+n+" namespace"] = whose(w.host, p.pid, n)
	}
}

// asNamed is the program of a process that runs the bytes whose digest the report
// names.
const asNamed = "the runtime's binary"

// program tells whether a process runs the named binary (proc(5), /proc/pid/exe),
// and what else when it does not: runtime.path can be something that starts another.
// Empty when it has just ended.
func (w *inForceWatch) program(pid int) string {
	exe := filepath.Join(w.host.Proc, strconv.Itoa(pid), "exe")
	runs, err := os.Stat(exe)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return ""
	}
	if err != nil {
		return "unread: " + unplaced(err)
	}
	// The runner has compared the digest of the file there before the job began.
	if named, err := os.Stat(w.runtime.Path); err == nil && os.SameFile(runs, named) {
		return asNamed
	}
	digest, err := runsc.FileDigest(exe)
	path, e := os.Readlink(exe)
	switch err := errors.Join(err, e); {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH):
		return ""
	case err != nil:
		return "unread: " + unplaced(err)
	case digest == w.runtime.Digest:
		return asNamed
	}
	return path + " " + digest
}

// strangers says, as what disqualifies a run, which process of the runtime was none of the binary that was
// identified; nil when all that were seen were.
func (i *readback) strangers() error {
	values := i.values()
	for _, s := range subjects {
		if p, ok := values[s.name+": program"]; ok && p != asNamed {
			return fmt.Errorf("runtime.path: the %s does not run the binary there but %s: name that one in runtime.path, and what starts it otherwise in runtime.flags", s.name, reports.Harmless(p))
		}
	}
	return nil
}

// whose tells whether a process shares a namespace with the harness
// (namespaces(7)).
func whose(h observers.Host, pid int, name string) string {
	own, err := os.Readlink(filepath.Join(h.Proc, "self/ns", name))
	theirs, e := os.Readlink(filepath.Join(h.Proc, strconv.Itoa(pid), "ns", name))
	switch {
	case err != nil || e != nil:
		return "unread: " + unplaced(errors.Join(err, e))
	case own == theirs:
		return "the harness's"
	}
	return "its own"
}

// unplaced is what an error says without the path, which is another each time.
func unplaced(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// fields reads "Name:\tvalue" lines (proc_pid_status(5)).
func fields(file string) map[string]string {
	out := map[string]string{}
	data, err := os.ReadFile(file)
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			out[k] = strings.Join(strings.Fields(v), " ")
		}
	}
	return out
}

// bootFlags is the command line without what is this job's alone (its folders
// and descriptors), so that two runs can be compared.
func bootFlags(cmd []byte, t runsc.Traces) string {
	var out []string
	for _, a := range strings.Split(string(cmd), "\x00")[1:] {
		if a == "" || strings.Contains(a, t.Dir) || strings.Contains(a, "-fd") || strings.Contains(a, t.Container) || strings.Contains(a, "-pid=") {
			continue
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}
