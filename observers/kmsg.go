package observers

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// oomRecord is one victim of the kernel's OOM killer, from its log.
type oomRecord struct {
	memcg  string // the cgroup that ran out; empty when the machine did, or when the log does not say
	task   string // the victim's cgroup; empty when the log does not say
	pid    int    // the victim
	global bool   // the machine ran out
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
// The first line is rate-limited to ten in five seconds, the others are not:
// a victim without it is known, but not its cgroup.
type oomParser struct {
	pending *oomRecord // the last oom-kill line, until its Killed line
	group   *oomRecord // the last victim, when its whole group follows
	last    oomRecord
}

// parse takes one record of /dev/kmsg, "prio,seq,usec,flags;text" with
// continuation lines (Documentation/ABI/testing/dev-kmsg). Only records of the
// kernel itself count: any root process may write others.
func (p *oomParser) parse(record []byte) (oomRecord, bool) {
	head, text, ok := strings.Cut(string(record), ";")
	prio, _, _ := strings.Cut(head, ",")
	n, err := strconv.Atoi(prio)
	if !ok || err != nil || n>>3 != 0 { // the facility 0 is the kernel
		return oomRecord{}, false
	}
	text, _, _ = strings.Cut(text, "\n")
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
	r := oomRecord{pid: pid, global: reason == "Out of memory"}
	switch {
	case p.pending != nil && p.pending.pid == pid:
		r = *p.pending
	case p.group != nil && p.group.pid == pid:
		// The group's first victim is killed, and told, once more with the rest
		// unless it has ended by then (mm/oom_kill.c, oom_kill_memcg_member).
		return oomRecord{}, false
	case p.group != nil:
		r = *p.group
		r.pid = pid
	}
	p.pending, p.last = nil, r
	return r, true
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

// kmsg follows the kernel's log for all watches of one observer at once. It
// reads only when asked to, never blocks, and is open while somebody follows.
type kmsg struct {
	name string
	read func(fd int, b []byte) (int, error) // unix.Read but for tests

	mu        sync.Mutex
	followers int
	fd        int
	parser    oomParser
	records   []oomRecord // since the log was opened
	lost      int         // how often the kernel overwrote records that were not read
	failure   error       // a read that failed: nothing after it was seen
}

// follow opens the log at its end for the first follower. It returns where the
// records and losses of this follower begin. After an error there is nothing to
// leave.
func (k *kmsg) follow() (from, lost int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.followers == 0 {
		fd, err := unix.Open(k.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, 0, fmt.Errorf("follow the kernel log %s: %w: run as root with CAP_SYSLOG, or set kernel.dmesg_restrict=0", k.name, err)
		}
		if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
			return 0, 0, errors.Join(fmt.Errorf("follow the kernel log %s: seek to its end: %w", k.name, err), unix.Close(fd))
		}
		k.fd, k.parser, k.records, k.lost, k.failure = fd, oomParser{}, nil, 0, nil
	}
	k.drain()
	if k.failure != nil && k.followers == 0 {
		return 0, 0, errors.Join(k.failure, unix.Close(k.fd))
	}
	k.followers++
	return len(k.records), k.lost, nil
}

// leave closes the log with the last follower.
func (k *kmsg) leave() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.followers--
	if k.followers > 0 {
		return nil
	}
	return unix.Close(k.fd)
}

// since returns the records from an index on, after reading what there is.
// The error says that some may be missing.
func (k *kmsg) since(from, lost int) ([]oomRecord, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drain()
	err := k.failure
	if k.lost > lost {
		err = errors.Join(err, fmt.Errorf("follow the kernel log %s: records were overwritten before they were read: enlarge the log (log_buf_len=)", k.name))
	}
	return k.records[from:], err
}

// drain reads until there is no more. The device gives one record a read; a
// recorded file gives many, one a line, which are split here.
func (k *kmsg) drain() {
	buf := make([]byte, 8192) // the longest record, CONSOLE_EXT_LOG_MAX
	for k.failure == nil {
		n, err := k.read(k.fd, buf)
		switch {
		case errors.Is(err, unix.EAGAIN), err == nil && n == 0:
			return
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EPIPE): // the next read goes on at the oldest record left
			k.lost++
		case err != nil:
			k.failure = fmt.Errorf("follow the kernel log %s: %w", k.name, err)
		default:
			for line := range bytes.Lines(buf[:n]) {
				if r, ok := k.parser.parse(bytes.TrimSuffix(line, []byte("\n"))); ok {
					k.records = append(k.records, r)
				}
			}
		}
	}
}
