package observers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Namespaces is the observer "namespaces": how many of the job's processes share
// one of the five namespaces with the harness (namespaces(7)). Only processes
// that have locked themselves in are judged, as in [Mounts].
//
// Values, counts of processes that share it: "pid", "mnt", "net", "ipc", "uts";
// and "judged", how many were looked at. Before is 0, Worst the largest sample.
//
// What it does not prove: that two jobs do not share a namespace with each
// other, or that the guest's own view is separate: that is the runtime's kernel,
// and the payload's to say.
type Namespaces struct {
	host   Host
	places []string
}

// NewNamespaces returns the observer. The places are bind files of network
// namespaces that the harness made: to live in one of those is as little a
// namespace of one's own as to live in the harness's.
func NewNamespaces(h Host, places ...string) *Namespaces { return &Namespaces{host: h, places: places} }

var fiveNamespaces = []string{"pid", "mnt", "net", "ipc", "uts"}

// Name is "namespaces".
func (*Namespaces) Name() string { return "namespaces" }

// Control compares the harness with itself: it shares all five.
func (o *Namespaces) Control(context.Context) Control {
	c := Control{Observer: o.Name(), Effect: "the harness is compared with itself", Want: "all five shared"}
	own, err := namespacesOf(o.host, "self")
	if err != nil {
		c.Reason = err.Error()
		return c
	}
	shared := sharedNamespaces(own, own)
	c.Seen = strings.Join(shared, " ") + " shared"
	if c.Passed = len(shared) == len(fiveNamespaces); !c.Passed {
		c.Reason = "the links below /proc/self/ns do not tell"
	}
	return c
}

// Watch arms the observer.
func (o *Namespaces) Watch(_ context.Context, s Subject) (Watch, error) {
	own, err := namespacesOf(o.host, "self")
	if err != nil {
		return nil, err
	}
	jail, err := newLockedIn(o.host, s)
	if err != nil {
		return nil, err
	}
	var places []string
	for _, file := range o.places {
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err != nil {
			return nil, fmt.Errorf("read namespaces: stat %s: %w", file, err)
		}
		places = append(places, fmt.Sprintf("net:[%d]", st.Ino))
	}
	return &namespacesWatch{host: o.host, own: own, places: places, jail: jail, obs: Observation{
		Observer: o.Name(), Place: s.Place, Values: map[string]Reading{},
	}}, nil
}

type namespacesWatch struct {
	host Host
	own  map[string]string

	places []string // network namespaces that the harness made
	jail   *lockedIn
	obs    Observation
}

// Sample looks at every locked-in process once.
func (w *namespacesWatch) Sample() {
	pids, err := w.jail.pids()
	if err != nil {
		w.lose(err)
		return
	}
	if len(pids) == 0 {
		return
	}
	w.obs.Samples++
	counts := map[string]int64{}
	judged := int64(0)
	for _, pid := range pids {
		theirs, err := namespacesOf(w.host, strconv.Itoa(pid))
		if processGone(w.host, strconv.Itoa(pid), err) {
			continue
		}
		if err != nil {
			w.lose(err)
			return
		}
		judged++
		shared := sharedNamespaces(w.own, theirs)
		if slices.Contains(w.places, theirs["net"]) {
			shared = append(shared, "net")
		}
		for _, n := range shared {
			if counts[n]++; counts[n] > w.obs.Values[n].Worst {
				w.obs.Find(fmt.Sprintf("process %d of the job shares the harness's %s namespace", pid, n))
			}
		}
	}
	for _, n := range fiveNamespaces {
		w.keep(n, counts[n])
	}
	w.keep("judged", judged)
}

func (w *namespacesWatch) keep(name string, n int64) {
	r := w.obs.Values[name]
	w.obs.Values[name] = Reading{Worst: max(r.Worst, n), After: n, Unit: "count"}
}

func (w *namespacesWatch) lose(err error) {
	if w.obs.Lost == "" {
		w.obs.Lost = err.Error()
	}
}

func (*namespacesWatch) Ended() {}

func (w *namespacesWatch) Stored() Observation {
	if w.obs.Lost == "" && w.obs.Values["judged"].Worst == 0 {
		w.obs.Lost = "no process of the job was seen after it had locked itself in"
	}
	return w.obs
}

// namespacesOf returns the identities, "pid:[4026531836]", by the kernel's name.
func namespacesOf(h Host, proc string) (map[string]string, error) {
	out := map[string]string{}
	for _, n := range fiveNamespaces {
		link, err := os.Readlink(filepath.Join(h.Proc, proc, "ns", n))
		if err != nil {
			return nil, fmt.Errorf("read namespaces: %w", err)
		}
		out[n] = link
	}
	return out, nil
}

func sharedNamespaces(a, b map[string]string) []string {
	var out []string
	for _, n := range fiveNamespaces {
		if a[n] != "" && a[n] == b[n] {
			out = append(out, n)
		}
	}
	return out
}

// lockedIn finds a job's processes that have loaded a seccomp filter which the
// harness does not have: the gofer and the sandbox do so as the last step
// before they serve the guest. A process does not lose a filter again.
type lockedIn struct {
	host    Host
	cgroup  string
	filters int
	known   map[int]bool
}

func newLockedIn(h Host, s Subject) (*lockedIn, error) {
	own, err := seccompFilters(h, "self")
	if err != nil {
		return nil, err
	}
	return &lockedIn{host: h, cgroup: s.Cgroup, filters: own, known: map[int]bool{}}, nil
}

func (l *lockedIn) pids() ([]int, error) {
	all, err := jobPIDs(l.host, l.cgroup)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int
	for _, pid := range all {
		if !l.known[pid] {
			n, err := seccompFilters(l.host, strconv.Itoa(pid))
			if err != nil && !processGone(l.host, strconv.Itoa(pid), err) {
				return nil, err
			}
			l.known[pid] = err == nil && n > l.filters
		}
		if l.known[pid] {
			out = append(out, pid)
		}
	}
	return out, nil
}
