package observers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/cgroup"
)

// OOM is the observer "oom": whom the kernel killed for want of memory, by its
// log, and by the count of the job's cgroup.
//
// Values in counts, before always 0 but for events:
//
//   - "own": victims because the job's own cgroup, or one below it, ran out;
//   - "above": victims of the job because a cgroup above its own ran out, such
//     as an outer guard: the job's own limit did not stop it;
//   - "foreign": victims since the watch was armed that are no job's of this
//     run, because the whole machine ran out, or a cgroup that the job is in.
//     Found names each;
//   - "elsewhere": victims because a cgroup ran out that the job is not in: what
//     a job uses is not charged there, so it has no part in that;
//   - "unnamed": victims whose cgroup the log left out (it names ten in five
//     seconds), so that they may be anybody's. Found names each;
//   - "events": the cgroup's own counter of kills. Version 2 may count the first
//     victim of a group twice.
type OOM struct {
	host   Host
	prefix string
	spawn  Spawner
	log    *kmsg
}

// NewOOM watches over h. Victims below prefix, the run's cgroup, are known:
// they are not foreign to any job of the run.
func NewOOM(h Host, prefix string, spawn Spawner) *OOM {
	return &OOM{host: h, prefix: prefix, spawn: spawn, log: &kmsg{name: h.Kmsg, read: unix.Read}}
}

// Name is "oom".
func (*OOM) Name() string { return "oom" }

// Control lets a process run out of memory in a throwaway group of 16 MiB and
// wants to see it in the log and in the group's counter.
func (o *OOM) Control(ctx context.Context) Control {
	c := Control{
		Observer: o.Name(), Place: o.prefix,
		Effect: "a process in a throwaway cgroup of 16 MiB allocated until killed",
		Want:   "one OOM record that names that cgroup, and the kill in its counter (2 where a group's first victim counts twice)",
	}
	records, events, err := o.contained(ctx)
	c.Seen = fmt.Sprintf("%d records, counter %d", records, events)
	if err != nil {
		return failed(c, err)
	}
	c.Passed = records == 1 && (events == 1 || events == 2)
	if !c.Passed {
		c.Reason = "the kernel's log and the cgroup's counter do not both show the kill: check that the kernel's log is this machine's (not a container's) and that the memory controller is enabled"
	}
	return c
}

func (o *OOM) contained(ctx context.Context) (records int, events int64, err error) {
	g, end, err := throwaway(ctx, o.host, o.prefix, o.Name(), cgroup.Limits{MemoryBytes: 16 << 20})
	if err != nil {
		return 0, 0, err
	}
	defer end(&err)
	from, lost, logErr := o.log.follow()
	if logErr == nil {
		defer func() { err = errors.Join(err, o.log.leave()) }()
	}
	child, err := o.spawn.Spawn(ctx, Child{Cgroup: g.Path(), Act: ActHog})
	if err != nil {
		return 0, 0, errors.Join(logErr, err)
	}
	if _, err := waitChild(ctx, child); err != nil {
		return 0, 0, errors.Join(logErr, err)
	}
	var countErr error
	until(ctx, func() bool {
		events, countErr = g.OOMKills()
		return countErr != nil || events > 0
	})
	if err := errors.Join(logErr, countErr); err != nil {
		return 0, events, err
	}
	// The kernel writes its record before it kills.
	seen, err := o.log.since(from, lost)
	for _, r := range seen {
		if within(r.memcg, g.Path()) {
			records++
		}
	}
	return records, events, err
}

// Watch arms the observer; see [OOM] for the values. An unreadable log is no
// error here: the observation is lost, and still carries the counter.
func (o *OOM) Watch(_ context.Context, s Subject) (Watch, error) {
	count, err := watchGauges(o.host, o.Name(), s, []gauge{{name: "events", unit: "count", read: (*cgroup.Group).OOMKills}})
	if err != nil {
		return nil, err
	}
	w := &oomWatch{OOM: o, subject: s, count: count}
	w.from, w.lost, w.blind = o.log.follow()
	return w, nil
}

type oomWatch struct {
	*OOM
	subject    Subject
	count      Watch
	from, lost int
	blind      error
}

// Sample reads the log too, so that it is not overwritten meanwhile.
func (w *oomWatch) Sample() {
	w.count.Sample()
	if w.blind == nil {
		_, _ = w.log.since(w.from, w.lost) // its error stays and is taken at the end
	}
}

func (w *oomWatch) Ended() { w.count.Ended() }

func (w *oomWatch) Stored() Observation {
	obs := w.count.Stored()
	if w.blind != nil {
		obs.Lost = w.blind.Error()
		return obs
	}
	records, err := w.log.since(w.from, w.lost)
	if err := errors.Join(err, w.log.leave()); err != nil {
		obs.Lost = err.Error()
	}
	counts := map[string]int64{"own": 0, "above": 0, "foreign": 0, "elsewhere": 0, "unnamed": 0}
	for _, r := range records {
		class := w.class(r)
		counts[class]++
		if class == "foreign" || class == "unnamed" {
			obs.Find(r.String())
		}
	}
	delete(counts, "known")
	for name, n := range counts {
		obs.Values[name] = Reading{Worst: n, After: n, Unit: "count"}
	}
	return obs
}

// class says whose a victim is.
func (w *oomWatch) class(r oomRecord) string {
	switch {
	case r.global:
		return "foreign"
	case r.memcg == "":
		return "unnamed"
	case within(r.memcg, w.subject.Cgroup):
		return "own"
	case within(r.task, w.subject.Cgroup):
		return "above"
	case within(r.task, w.prefix):
		return "known"
	case strings.HasPrefix(w.subject.Cgroup, strings.TrimSuffix(r.memcg, "/")+"/"):
		return "foreign"
	}
	return "elsewhere"
}

// within says whether path is group or below it. The kernel may show a path
// with a prefix, where this machine is itself a container, so the group's
// whole components may stand anywhere in it.
func within(path, group string) bool {
	return group != "" && strings.Contains(path+"/", group+"/")
}
