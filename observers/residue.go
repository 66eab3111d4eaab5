package observers

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Residue is the observer "residue": what is left of a job after its result is
// stored, found by a scan of the host and not by asking the runner.
//
// Values of an observation, all counts: "processes", "mounts", "namespaces"
// (network namespaces kept alive by a process or a bind mount), "links",
// "cgroups", "state" (entries of the runtime's state folders, bound unix
// sockets), "nft_tables" and "scratch". Before is the count when armed, After
// what is left, Worst the larger: a job that leaves nothing has After 0.
//
// A thing is the job's when it is in the job's cgroup or its name holds the
// job's container id, cgroup, scratch or place. In the network namespaces of the
// harness's own places nothing else has a reason to appear, so what is new in
// one is residue whatever its name; jobs that share such a place side by side
// all report it.
//
// What it does not prove: that nothing is left under another name elsewhere on
// the host, or held only by an open descriptor (the observer "space" counts
// blocks so held). Of mounts it sees the mount namespace that it runs in.
type Residue struct {
	host    Host
	grounds Grounds
}

// Grounds says where [Residue] looks, and where its controls may leave things
// for a moment.
type Grounds struct {
	State   []string // folders of the runtime's state and of bundles and control sockets, as many as there are
	Places  []string // bind files of the harness's own network namespaces
	Cgroup  string   // the run's cgroup prefix, for a throwaway group
	Scratch string   // an existing folder, for throwaway files and mounts
	Spawn   Spawner  // starts the control's marked process
}

// NewResidue makes the observer.
func NewResidue(h Host, g Grounds) *Residue { return &Residue{host: h, grounds: g} }

// Name is "residue".
func (r *Residue) Name() string { return "residue" }

// residueKinds are the names of the values, in the order of reports.
var residueKinds = []string{"processes", "mounts", "namespaces", "links", "cgroups", "state", "nft_tables", "scratch"}

// residueWatch is [Residue] armed for one subject.
type residueWatch struct {
	scan   residueScan
	before map[string][]string
	procs  string          // the job's cgroup.procs in one hierarchy, once there is one
	looked map[string]bool // pids whose namespace is known
	seen   Observation
}

// Watch notes what is there before the job.
func (r *Residue) Watch(_ context.Context, s Subject) (Watch, error) {
	scan, err := newResidueScan(r.host, r.grounds, s)
	if err == nil {
		scan.spaces, err = openSpaces(r.grounds.Places)
	}
	if err != nil {
		return nil, fmt.Errorf("watch residue of %s: %w", s.Place, err)
	}
	w := &residueWatch{scan: scan, looked: map[string]bool{}, seen: Observation{Observer: r.Name(), Place: s.Place, Samples: 1}}
	if w.before, err = scan.run(); err != nil {
		return nil, fmt.Errorf("watch residue of %s: %w", s.Place, err)
	}
	return w, nil
}

// Sample notes the network namespaces that the job's processes live in: after
// their end nothing ties a namespace that somebody kept to the job.
func (w *residueWatch) Sample() {
	pids, err := w.pids()
	if err != nil {
		return // not there yet, or no more
	}
	for _, pid := range pids {
		if w.looked[pid] {
			continue
		}
		file := filepath.Join(w.scan.host.Proc, pid, "ns", "net")
		if inode, err := netInode(file); err == nil {
			w.looked[pid] = true
			w.scan.livedIn(inode, file)
		}
	}
	w.seen.Samples++
}

// pids lists the job's cgroup in the first hierarchy that has it.
func (w *residueWatch) pids() ([]string, error) {
	if w.procs == "" {
		found, err := filepath.Glob(filepath.Join(w.scan.host.Cgroup, "*", w.scan.subject.Cgroup, "cgroup.procs"))
		if err != nil {
			return nil, err
		}
		w.procs = filepath.Join(w.scan.host.Cgroup, w.scan.subject.Cgroup, "cgroup.procs")
		if len(found) > 0 {
			w.procs = found[0]
		}
	}
	data, err := readSmall(w.procs)
	if err != nil {
		w.procs = ""
		return nil, err
	}
	return strings.Fields(data), nil
}

// Ended does nothing: only what outlives the teardown is residue.
func (w *residueWatch) Ended() {}

// Stored scans for what is left.
func (w *residueWatch) Stored() Observation {
	after, err := w.scan.run()
	if err != nil {
		w.seen.Lost = err.Error()
	}
	w.seen.Samples++
	w.seen.Values = map[string]Reading{}
	for _, kind := range residueKinds {
		before, left := int64(len(w.before[kind])), int64(len(after[kind]))
		w.seen.Values[kind] = Reading{before, max(before, left), left, "count"}
		for _, what := range after[kind] {
			w.seen.Find(what)
		}
	}
	return w.seen
}

// netInode reads a /proc/PID/ns/net, whose target is net:[inode].
func netInode(path string) (uint64, error) {
	target, err := readLink(path)
	if err != nil {
		return 0, err
	}
	return parseNetInode(target)
}

func parseNetInode(target string) (uint64, error) {
	number, isNet := strings.CutPrefix(target, "net:[")
	number, closed := strings.CutSuffix(number, "]")
	if !isNet || !closed {
		return 0, fmt.Errorf("%q names no network namespace", target)
	}
	return strconv.ParseUint(number, 10, 64)
}

// namedAfter says whether a name holds one of the words, with no letter or
// digit beside it: runtimes put ids between underscores, dots and colons.
func namedAfter(name string, words []string) bool {
	alone := func(b byte) bool {
		return b < '0' || b > '9' && b < 'A' || b > 'Z' && b < 'a' || b > 'z'
	}
	return slices.ContainsFunc(words, func(word string) bool {
		for start := 0; word != ""; start++ {
			i := strings.Index(name[start:], word)
			if i < 0 {
				return false
			}
			start += i
			end := start + len(word)
			if (start == 0 || alone(name[start-1])) && (end == len(name) || alone(name[end])) {
				return true
			}
		}
		return false
	})
}
