package observers

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"tenwalls.dev/harness/internal/cgroup"
)

// processesWatch remembers, over its samples, which processes are the job's.
type processesWatch struct {
	scanner
	subject Subject
	group   *cgroup.Group
	words   []string          // what by_files looks for
	old     map[identity]bool // there when the watch was armed, or a kernel thread
	known   map[identity]bool // seen to be the job's
	pids    map[int]identity  // pid of each known process
	last    []process         // what the last scan found, by pid
	spare   []process         // what the one before found: its memory is used again
	o       Observation
}

// Sample counts by cgroup and ancestry.
func (w *processesWatch) Sample() { w.look(false, false) }

// Ended looks at files as well, while the job's cgroup still stands.
func (w *processesWatch) Ended() { w.look(true, false) }

// exitWithin is how long a process that is on its way out may take to be gone.
// The kernel empties a cgroup of a dying process before it makes a zombie of it
// (kernel/exit.c, do_exit: cgroup_exit stands before exit_notify), and on a busy
// machine some time can pass in between. In it nothing of the program is executed
// any more, and the runner, who waits for an empty cgroup, has done all it can.
const exitWithin = 2 * time.Second

// exitAgain is how often it is looked at meanwhile: there is no event of it for
// who is not the parent.
const exitAgain = 2 * time.Millisecond

// Stored looks for what is left, and names it. What is on its way out is waited
// for, and counts when it does not get there in time.
func (w *processesWatch) Stored() Observation {
	for end := time.Now().Add(exitWithin); w.look(true, false) && time.Now().Before(end); time.Sleep(exitAgain) {
	}
	w.look(true, true)
	return w.o
}

// look counts. It says whether there is something left, all of it on its way out.
func (w *processesWatch) look(files, name bool) (exiting bool) {
	found, err := w.scan()
	if err != nil {
		w.lost(fmt.Errorf("scan processes: %w", err))
		return false
	}
	left, ending := 0, 0
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
		if len(why) > 0 {
			left++
			if p.exiting {
				ending++
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
	return left > 0 && left == ending
}

// scan returns the processes that came since the watch was armed and those in
// the job's cgroup, without zombies and without the caller, and learns from them.
// What it returns is good until the scan after the next.
//
// Who is in the cgroup is read from the cgroup, after the listing. Of the rest
// only those are read that the last scan did not find. The others are remembered
// with the parent, group and session that they had then, and read again when one
// of these turns out to be the job's: nothing else makes a process of another the
// job's, since a group is joined within a session only.
func (w *processesWatch) scan() (found []process, err error) {
	if err := w.open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	list, err := w.entries()
	if err != nil {
		return nil, err
	}
	members, err := w.group.Procs()
	if err != nil {
		return nil, err
	}
	found, last := w.spare[:0], w.last
	for _, id := range list {
		_, member := slices.BinarySearch(members, id.pid)
		if id.pid == os.Getpid() || w.old[id] && !member && !w.known[id] {
			continue
		}
		for len(last) > 0 && last[0].pid < id.pid {
			last = last[1:]
		}
		var p process
		if len(last) > 0 && last[0].identity == id && !w.known[id] {
			p = last[0]
			p.remembered = true
		} else if p, err = w.one(id); err != nil {
			return nil, err
		}
		if p.parent == kthreadd {
			w.old[id] = true
			continue
		}
		p.inCgroup = member
		found = append(found, p)
	}
	err = w.learn(found)
	found = slices.DeleteFunc(found, func(p process) bool { return !p.running })
	w.last, w.spare = found, w.last
	return found, err
}

// learn adds to the known processes until no more follow, since a child may be
// listed before its parent.
func (w *processesWatch) learn(found []process) error {
	for grew := true; grew; {
		grew = false
		for i := range found {
			p := &found[i]
			if w.known[p.identity] || !p.running || !p.inCgroup && !w.related(p, found) {
				continue
			}
			if p.remembered {
				now, err := w.one(p.identity)
				if err != nil {
					return err
				}
				now.inCgroup = p.inCgroup
				if *p = now; !p.inCgroup && !w.related(p, found) {
					continue
				}
			}
			w.known[p.identity] = true
			w.pids[p.pid] = p.identity
			grew = true
		}
	}
	return nil
}

func (w *processesWatch) related(p *process, found []process) bool {
	return w.leads(p.parent, found) || w.leads(p.group, found) || w.leads(p.session, found)
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
