package observers

import (
	"fmt"
	"slices"
	"strings"

	"tenwalls.dev/harness/internal/cgroup"
)

// processesWatch remembers, over its samples, which processes are the job's.
type processesWatch struct {
	scanner
	subject Subject
	group   *cgroup.Group
	words   []string          // what by_files looks for
	old     map[identity]bool // there when the watch was armed
	known   map[identity]bool // seen to be the job's
	pids    map[int]identity  // pid of each known process
	o       Observation
}

// Sample counts by cgroup and ancestry.
func (w *processesWatch) Sample() { w.look(false, false) }

// Ended looks at files as well, while the job's cgroup still stands.
func (w *processesWatch) Ended() { w.look(true, false) }

// Stored looks for what is left, and names it.
func (w *processesWatch) Stored() Observation {
	w.look(true, true)
	return w.o
}

func (w *processesWatch) look(files, name bool) {
	members, err := w.group.Procs()
	if err != nil {
		w.lost(err)
		return
	}
	found, err := w.scan(w.subject.Cgroup, func(id identity) bool {
		_, moved := slices.BinarySearch(members, id.pid)
		return w.old[id] && !moved && !w.known[id]
	})
	if err != nil {
		w.lost(err)
		return
	}
	w.learn(found)
	var inCgroup, descendants, byFiles int64
	for _, p := range found {
		var why []string
		if p.inCgroup {
			inCgroup++
			why = append(why, "in cgroup "+w.subject.Cgroup)
		}
		if w.known[p.identity] {
			descendants++
			why = append(why, "known as the job's")
		}
		if files {
			if t := w.traces(p.pid, w.words); len(t) > 0 {
				byFiles++
				why = append(why, t...)
			}
		}
		if name && len(why) > 0 {
			w.o.Find(fmt.Sprintf("process %d: %s", p.pid, strings.Join(why, ", ")))
		}
	}
	w.put("in_cgroup", inCgroup)
	w.put("descendants", descendants)
	if files {
		w.put("by_files", byFiles)
	}
	w.o.Samples++
}

// learn adds to the known processes until no more follow: a child may be
// listed before its parent.
func (w *processesWatch) learn(found []process) {
	for grew := true; grew; {
		grew = false
		for _, p := range found {
			if w.known[p.identity] {
				continue
			}
			if p.inCgroup || w.leads(p.parent, found) || w.leads(p.group, found) || w.leads(p.session, found) {
				w.known[p.identity] = true
				w.pids[p.pid] = p.identity
				grew = true
			}
		}
	}
}

// leads says whether pid is a known process, or was one and its pid, kept by
// its process group or session, is not another's now.
func (w *processesWatch) leads(pid int, found []process) bool {
	id, ok := w.pids[pid]
	if !ok {
		return false
	}
	i := slices.IndexFunc(found, func(p process) bool { return p.pid == pid })
	return i < 0 || found[i].identity == id
}

func (w *processesWatch) put(name string, n int64) {
	r := w.o.Values[name]
	r.Unit, r.Worst, r.After = "processes", max(r.Worst, n), n
	w.o.Values[name] = r
}

func (w *processesWatch) lost(err error) {
	if w.o.Lost == "" {
		w.o.Lost = err.Error()
	}
}
