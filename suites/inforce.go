package suites

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox/runsc"
)

// readback is what was read back from a running sandbox: what is in force, and
// not what a file says. It is recorded, not judged: the trials judge.
type readback struct {
	mu   sync.Mutex
	seen map[string]string
}

func (i *readback) values() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen == nil {
		return map[string]string{}
	}
	return maps.Clone(i.seen)
}

// read takes the values once, from the first job without lifts that has a
// locked-in sandbox process.
func (i *readback) read(h observers.Host, g *cgroup.Group, t runsc.Traces) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen != nil {
		return
	}
	pids, err := g.Procs()
	if err != nil {
		return
	}
	for _, pid := range pids {
		dir := filepath.Join(h.Proc, strconv.Itoa(pid))
		cmd, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.HasPrefix(string(cmd), "runsc-sandbox\x00") {
			continue
		}
		status := fields(filepath.Join(dir, "status"))
		if status["Seccomp"] != "2" {
			continue
		}
		seen := map[string]string{}
		for _, k := range []string{"Uid", "Gid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters"} {
			seen["sandbox process: "+k] = status[k]
		}
		seen["sandbox process: flags"] = bootFlags(cmd, t)
		for _, n := range []string{"pid", "mnt", "net", "ipc", "uts", "user"} {
			seen["sandbox process: "+n+" namespace"] = whose(h, pid, n)
		}
		limit(seen, "cgroup: memory limit", g.MemoryLimit)
		limit(seen, "cgroup: swap limit", g.SwapLimit)
		limit(seen, "cgroup: task limit", g.PIDsLimit)
		i.seen = seen
		return
	}
}

// whose tells whether a process shares a namespace with the harness
// (namespaces(7)).
func whose(h observers.Host, pid int, name string) string {
	own, err := os.Readlink(filepath.Join(h.Proc, "self/ns", name))
	theirs, e := os.Readlink(filepath.Join(h.Proc, strconv.Itoa(pid), "ns", name))
	switch {
	case err != nil || e != nil:
		return "unread: " + errors.Join(err, e).Error()
	case own == theirs:
		return "the harness's"
	}
	return "its own"
}

func limit(seen map[string]string, name string, read func() (int64, error)) {
	n, err := read()
	switch {
	case errors.Is(err, cgroup.ErrNotAccounted):
		seen[name] = "not accounted by this kernel"
	case err != nil:
		seen[name] = "unread: " + err.Error()
	default:
		seen[name] = text(n)
	}
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

// inForceName is the key under which it is sampled; no want names it.
const inForceName = "in force"

// inForceWatch reads what is in force while the job runs.
type inForceWatch struct {
	to     *readback
	host   observers.Host
	group  *cgroup.Group
	traces runsc.Traces
}

func (w inForceWatch) Sample()                       { w.to.read(w.host, w.group, w.traces) }
func (w inForceWatch) Ended()                        {}
func (w inForceWatch) Stored() observers.Observation { return observers.Observation{} }
