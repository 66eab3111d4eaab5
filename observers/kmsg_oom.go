package observers

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// oomRecord is one victim of the kernel's OOM killer, from its log.
type oomRecord struct {
	memcg  string // the cgroup that ran out; empty when the machine did, or when the log does not say
	task   string // the victim's cgroup; empty when the log does not say
	pid    int    // the victim
	global bool   // the machine ran out
	named  bool   // the log has an oom-kill line of its own for it

	at time.Duration // since boot, by the log's own clock
}

func (r oomRecord) String() string {
	switch {
	case r.global:
		return fmt.Sprintf("the machine ran out of memory: process %d in %s killed", r.pid, r.task)
	case r.memcg == "":
		return fmt.Sprintf("process %d killed for want of memory in a cgroup that the log does not name", r.pid)
	}
	return fmt.Sprintf("cgroup %s ran out of memory: process %d in %s killed", r.memcg, r.pid, r.task)
}

// oomParser turns log records into victims. The kernel writes, under one lock,
// so that the records of two kills do not mix (mm/oom_kill.c):
//
//	oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,task_memcg=/job,task=exe,pid=123,uid=65534
//	Memory cgroup out of memory: Killed process 123 (exe) total-vm:...
//	Tasks in /job are going to be killed due to memory.oom.group set
//	Memory cgroup out of memory: Killed process 124 (exe) total-vm:...
//
// The first line is rate-limited (see [oomBurst]), the others are not: a victim
// without it is known, but not its cgroup. When the limit's window is over, the
// next kill comes behind a line that tells how many lines were left out:
//
//	oom_kill_process: 3 callbacks suppressed
type oomParser struct {
	suppressed int // oom-kill lines that the log says were left out

	pending *oomRecord // the last oom-kill line, until its Killed line
	group   *oomRecord // the last victim, when its whole group follows
	last    oomRecord
}

// parse takes one record of /dev/kmsg, "prio,seq,usec,flags;text" with
// continuation lines (Documentation/ABI/testing/dev-kmsg). Only records of the
// kernel itself count: any root process may write others.
func (p *oomParser) parse(record []byte) (oomRecord, bool) {
	head, text, ok := strings.Cut(string(record), ";")
	prio, rest, _ := strings.Cut(head, ",")
	n, err := strconv.Atoi(prio)
	if !ok || err != nil || n>>3 != 0 { // the facility 0 is the kernel
		return oomRecord{}, false
	}
	text, _, _ = strings.Cut(text, "\n")
	if n, ok := suppressedBy(text); ok {
		p.suppressed += n
		return oomRecord{}, false
	}
	if rest, ok := strings.CutPrefix(text, "oom-kill:constraint="); ok {
		r := parseConstraint(rest)
		p.pending, p.group = &r, nil
		return oomRecord{}, false
	}
	if strings.HasPrefix(text, "Tasks in ") && strings.HasSuffix(text, " are going to be killed due to memory.oom.group set") {
		g := p.last
		p.group = &g
		return oomRecord{}, false
	}
	reason, victim, ok := strings.Cut(text, ": Killed process ")
	if !ok || (reason != "Memory cgroup out of memory" && reason != "Out of memory") {
		return oomRecord{}, false
	}
	number, _, _ := strings.Cut(victim, " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return oomRecord{}, false
	}
	at := logTime(rest)
	r := oomRecord{pid: pid, global: reason == "Out of memory"}
	switch {
	case p.pending != nil && p.pending.pid == pid:
		r = *p.pending
		r.named = true
	case p.group != nil && p.group.pid == pid:
		// The group's first victim is killed, and told, once more with the rest
		// unless it has ended by then (mm/oom_kill.c, oom_kill_memcg_member).
		return oomRecord{}, false
	case p.group != nil:
		r = *p.group
		r.pid, r.named = pid, false
	}
	r.at = at
	p.pending, p.last = nil, r
	return r, true
}

// suppressedBy reads how many lines the kernel's OOM killer left out.
func suppressedBy(text string) (int, bool) {
	words, ok := strings.CutPrefix(text, "oom_kill_process: ")
	if !ok {
		return 0, false
	}
	number, ok := strings.CutSuffix(words, " callbacks suppressed")
	n, err := strconv.Atoi(number)
	return n, ok && err == nil && n >= 0
}

// logTime is the time of a record, from "seq,usec,flags". A record without one
// is from the boot, when nobody looked.
func logTime(head string) time.Duration {
	_, rest, _ := strings.Cut(head, ",")
	number, _, _ := strings.Cut(rest, ",")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > int64(1<<62)/int64(time.Microsecond) {
		return 0
	}
	return time.Duration(n) * time.Microsecond
}

// parseConstraint reads the part after "constraint=". The victim's name comes
// last but two and may hold anything, so the paths are taken from the left and
// the pid from the right.
func parseConstraint(s string) (r oomRecord) {
	if _, rest, ok := strings.Cut(s, ",oom_memcg="); ok {
		r.memcg, _, _ = strings.Cut(rest, ",task_memcg=")
	} else {
		r.global = strings.Contains(s, ",global_oom,")
	}
	if _, rest, ok := strings.Cut(s, ",task_memcg="); ok {
		r.task, _, _ = strings.Cut(rest, ",task=")
	}
	if i := strings.LastIndex(s, ",pid="); i >= 0 {
		number, _, _ := strings.Cut(s[i+len(",pid="):], ",")
		r.pid, _ = strconv.Atoi(number)
	}
	return r
}
