package observers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tenwalls.dev/harness/internal/cgroup"
)

// Processes is the observer "processes": the harness's own scan of /proc for
// the job's host processes, whatever the runner says of them. Only processes
// that came after the watch was armed can be the job's, except that one which
// moves into the job's cgroup is found there.
//
// Values in processes, zombies left out:
//
//   - "in_cgroup": in the job's cgroup or below it, in any hierarchy that has a
//     controller which the harness uses;
//   - "descendants": of a process that was seen to be the job's before, by
//     parent, process group or session, wherever it is now: a process that was
//     seen once stays known when its parent ends and when it leaves the cgroup;
//   - "by_files": whose command line, environment, folder or open files name
//     the container or lie in the scratch; looked at by Ended and Stored only.
//
// After is what is left once the result is stored, and Found names it.
//
// It does not see a process that leaves cgroup, group and session, loses its
// parent and names nothing, all between two samples.
type Processes struct {
	host   Host
	prefix string
	spawn  Spawner
}

// NewProcesses watches over h; prefix is the run's cgroup.
func NewProcesses(h Host, prefix string, spawn Spawner) *Processes {
	return &Processes{host: h, prefix: prefix, spawn: spawn}
}

// Name is "processes".
func (*Processes) Name() string { return "processes" }

// Control starts a marked process in a throwaway group, with a file of a
// throwaway scratch open, and wants it found in the cgroup, by its mark and by
// its file, and gone after it was ended.
func (p *Processes) Control(ctx context.Context) Control {
	c := Control{
		Observer: p.Name(), Place: p.prefix,
		Effect: "a marked process in a throwaway cgroup held a file of a throwaway scratch",
		Want:   "1 in the cgroup, 1 known since, 1 by mark and file; 0 after its end",
	}
	alive, left, err := p.marked(ctx)
	if err != nil {
		return failed(c, err)
	}
	count := func(o Observation, v string) int64 { return o.Values[v].After }
	c.Seen = fmt.Sprintf("%d in the cgroup, %d known since, %d by mark and file (%s); %d after its end",
		count(alive, "in_cgroup"), count(alive, "descendants"), count(alive, "by_files"), strings.Join(alive.Found, "; "),
		count(left, "in_cgroup")+count(left, "descendants")+count(left, "by_files"))
	words := strings.Join(alive.Found, " ")
	c.Passed = alive.Lost == "" && left.Lost == "" &&
		count(alive, "in_cgroup") == 1 && count(alive, "descendants") == 1 && count(alive, "by_files") == 1 &&
		strings.Contains(words, "cmdline names") && strings.Contains(words, "fd/0 is") &&
		count(left, "in_cgroup")+count(left, "descendants")+count(left, "by_files") == 0
	if !c.Passed {
		c.Reason = "the scan does not find a process that is there: check that " + p.host.Proc + " is this pid namespace's, mounted without hidepid, and that the harness may read other processes' files (CAP_SYS_PTRACE)"
		if lost := alive.Lost + left.Lost; lost != "" {
			c.Reason = lost
		}
	}
	return c
}

func (p *Processes) marked(ctx context.Context) (alive, left Observation, err error) {
	g, end, err := throwaway(ctx, p.host, p.prefix, p.Name(), cgroup.Limits{})
	if err != nil {
		return alive, left, err
	}
	defer end(&err)
	scratch, err := os.MkdirTemp(p.host.Temp, "control-processes-")
	if err != nil {
		return alive, left, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	file, err := os.Create(filepath.Join(scratch, "held"))
	if err != nil {
		return alive, left, err
	}
	defer file.Close()
	mark := filepath.Base(scratch)
	s := Subject{Place: p.prefix, Cgroup: g.Path(), Container: mark, Scratch: scratch}
	w, err := p.arm(s)
	if err != nil {
		return alive, left, err
	}
	child, err := p.spawn.Spawn(ctx, Child{Cgroup: g.Path(), Act: ActSleep, Args: []string{mark}, Stdio: file})
	if err != nil {
		return alive, left, err
	}
	defer reap(child)
	w.Ended()
	// A copy of the observation as it would be stored now, the process alive.
	again := *w
	again.o.Values = map[string]Reading{}
	alive = again.Stored()
	reap(child)
	return alive, w.Stored(), nil
}

// Watch arms the observer; see [Processes] for the values.
func (p *Processes) Watch(_ context.Context, s Subject) (Watch, error) { return p.arm(s) }

func (p *Processes) arm(s Subject) (*processesWatch, error) {
	tree, err := cgroup.Detect(p.host.Cgroup)
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	group, err := tree.Open(s.Cgroup)
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	w := &processesWatch{
		scanner: scanner{proc: p.host.Proc}, subject: s, group: group,
		old: map[identity]bool{}, known: map[identity]bool{}, pids: map[int]identity{},
		o: Observation{Observer: p.Name(), Place: s.Place, Values: map[string]Reading{}},
	}
	for _, word := range []string{s.Container, s.Scratch} {
		if word != "" {
			w.words = append(w.words, word)
		}
	}
	list, err := w.list()
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	for _, id := range list {
		w.old[id] = true
	}
	before, err := group.Procs()
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	for _, v := range []string{"in_cgroup", "descendants", "by_files"} {
		w.o.Values[v] = Reading{Unit: "processes"}
	}
	w.o.Values["in_cgroup"] = Reading{Before: int64(len(before)), Worst: int64(len(before)), Unit: "processes"}
	return w, nil
}
