package observers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

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
//   - "unnamed": victims whose cgroup the log left out (see [oomBurst]), so that
//     they may be anybody's. Found names each;
//   - "events": the cgroup's own counter of kills. Version 2 may count the first
//     victim of a group twice.
//
// When the counter grew, the log names no victim of the job's, and records were
// left out, the log says nothing of the job any more: the observation is lost,
// and the values that would be a false zero are absent.
type OOM struct {
	host   Host
	prefix string
	spawn  Spawner
	log    *kmsg
	kills  int
	wait   func(context.Context) error // waitOut but for tests
}

// NewOOM watches over h. Victims below prefix, the run's cgroup, are known:
// they are not foreign to any job of the run.
func NewOOM(h Host, prefix string, spawn Spawner) *OOM {
	return &OOM{host: h, prefix: prefix, spawn: spawn, log: &kmsg{name: h.Kmsg, read: unix.Read}, wait: waitOut}
}

// Expect says how many kills the run itself will cause after the control. When
// the kernel would not write so many records any more, since others were killed
// just before, the control waits until it does; see [oomBurst].
func (o *OOM) Expect(kills int) { o.kills = kills }

// Name is "oom".
func (*OOM) Name() string { return "oom" }

// Control lets a process run out of memory in a throwaway group of 16 MiB and
// wants to see it in the log and in the group's counter. When the kernel left
// out the record because of its rate limit, it waits until that is over, five
// seconds, and tries once more.
func (o *OOM) Control(ctx context.Context) Control {
	c := Control{
		Observer: o.Name(), Place: o.prefix,
		Effect: "a process in a throwaway cgroup of 16 MiB allocated until killed",
		Want:   "one OOM record that names that cgroup, and the kill in its counter (2 where a group's first victim counts twice)",
	}
	k, err := o.contained(ctx)
	again := err == nil && k.unnamed
	if again {
		if err = o.wait(ctx); err == nil {
			k, err = o.contained(ctx)
		}
	}
	c.Seen = fmt.Sprintf("%d records, counter %d", k.records, k.events)
	if again {
		c.Seen += ", the second time: the kernel's rate limit left out the first record"
	}
	if err != nil {
		return failed(c, err)
	}
	c.Passed = k.records == 1 && (k.events == 1 || k.events == 2)
	switch {
	case c.Passed:
		return o.spare(ctx, c, k.at)
	case k.unnamed:
		c.Reason = limitWords(1)
	default:
		c.Reason = "the kernel's log and the cgroup's counter do not both show the kill: check that the kernel's log is this machine's (not a container's) and that the memory controller is enabled"
	}
	return c
}

// spare waits until the kernel will write as many records as the run needs.
func (o *OOM) spare(ctx context.Context, c Control, at time.Duration) Control {
	history, err := o.log.history()
	if err != nil {
		return failed(c, err)
	}
	n := spentAt(history, at)
	if n <= 1 || oomBurst-n >= o.kills { // the first of a window leaves as many as there ever are
		return c
	}
	if err := o.wait(ctx); err != nil {
		return failed(c, err)
	}
	c.Seen += fmt.Sprintf(", the last of %d records within %s: waited for the next", n, oomWindow)
	return c
}

// killSeen is how one kill showed.
type killSeen struct {
	records int           // that name its cgroup
	unnamed bool          // it is told without its cgroup
	events  int64         // by the cgroup's counter
	at      time.Duration // of the record, by the log's clock
}

// take looks for the kill of the process in the group.
func (k *killSeen) take(records []oomRecord, group string, pid int) {
	for _, r := range records {
		if within(r.memcg, group) {
			k.records++
			k.at = r.at
		} else if r.pid == pid && r.memcg == "" && !r.global {
			k.unnamed = true
		}
	}
}

func (o *OOM) contained(ctx context.Context) (k killSeen, err error) {
	g, end, err := throwaway(ctx, o.host, o.prefix, o.Name(), cgroup.Limits{MemoryBytes: 16 << 20})
	if err != nil {
		return k, err
	}
	defer end(&err)
	from, logErr := o.log.follow()
	if logErr == nil {
		defer func() { err = errors.Join(err, o.log.leave()) }()
	}
	child, err := o.spawn.Spawn(ctx, Child{Cgroup: g.Path(), Act: ActHog})
	if err != nil {
		return k, errors.Join(logErr, err)
	}
	pid := child.Pid
	if _, err := waitChild(ctx, child); err != nil {
		return k, errors.Join(logErr, err)
	}
	var countErr error
	until(ctx, func() bool {
		k.events, countErr = g.OOMKills()
		return countErr != nil || k.events > 0
	})
	if err := errors.Join(logErr, countErr); err != nil {
		return k, err
	}
	// The kernel writes its record before it kills.
	seen, _, err := o.log.since(from)
	k.take(seen, g.Path(), pid)
	return k, err
}

// Watch arms the observer; see [OOM] for the values. An unreadable log is no
// error here: the observation is lost, and still carries the counter.
func (o *OOM) Watch(_ context.Context, s Subject) (Watch, error) {
	count, err := watchGauges(o.host, o.Name(), s, []gauge{{name: "events", unit: "count", read: (*cgroup.Group).OOMKills}})
	if err != nil {
		return nil, err
	}
	w := &oomWatch{OOM: o, subject: s, count: count}
	w.from, w.blind = o.log.follow()
	return w, nil
}

type oomWatch struct {
	*OOM
	subject Subject
	count   Watch
	from    kmsgMark
	blind   error
}

// Sample reads the log too, so that it is not overwritten meanwhile.
func (w *oomWatch) Sample() {
	w.count.Sample()
	if w.blind == nil {
		_, _, _ = w.log.since(w.from) // its error stays and is taken at the end
	}
}

func (w *oomWatch) Ended() { w.count.Ended() }

func (w *oomWatch) Stored() Observation {
	obs := w.count.Stored()
	if w.blind != nil {
		obs.Lost = w.blind.Error()
		return obs
	}
	records, suppressed, err := w.log.since(w.from)
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
	events := obs.Values["events"].After - obs.Values["events"].Before
	if why := overlooked(events, counts["own"]+counts["above"], counts["unnamed"], suppressed); why != "" {
		if obs.Lost == "" {
			obs.Lost = why
		}
		// Nor is the victim known to be nobody else's.
		maps.DeleteFunc(counts, func(name string, n int64) bool { return n == 0 && name != "unnamed" })
	}
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
