package main

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("neighbour", "known-path", openKnownPaths)
	_ = route("neighbour", "processes", lookForProcesses)
)

// openKnownPaths opens the neighbour's folder or file by its host path, plainly
// and by the roots that /proc names.
func openKnownPaths(p *Probe) {
	host := p.Param("neighbour_path")
	up := strings.Repeat("../", 16)
	for _, name := range []string{host, "/proc/1/root" + host, "/proc/self/cwd/" + up + strings.TrimPrefix(host, "/")} {
		call := "openat(" + name + ", O_RDONLY)"
		var st unix.Stat_t
		there, note, where := unix.Stat(name, &st) == nil, "a path of the host", bySearch(name)
		if there {
			_, note = owned(&st, unix.R_OK)
			where = byOwnership(&st, unix.R_OK)
		}
		p.Reached(call, note)
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		switch errno := errnoOf(err); {
		case err == nil:
			p.Happened(call, readSome(fd), note)
			unix.Close(fd) //nolint:errcheck,gosec // the claim is made
		case !there && (errno == unix.ENOENT || errno == unix.ENOTDIR):
			p.Refused(hostile.Absent, hostile.MountTable, call, 0, errnoName(errno)+"; the path exists on no mount of ours")
		default:
			p.refusedBy(call, unix.SYS_OPENAT, errno, where)
		}
	}
}

// readSome reads a little through a descriptor and returns the bytes that came,
// 0 for a folder.
func readSome(fd int) int64 {
	n, err := unix.Read(fd, make([]byte, 4096))
	if err != nil {
		return 0
	}
	return int64(n)
}

// process is one entry of /proc.
type process struct {
	pid, parent int
	words       string // command line
}

// processes lists what /proc shows (proc(5)).
func processes() ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(path.Join("/proc", e.Name(), "status"))
		if err != nil {
			continue // it ended in between
		}
		parent, err := strconv.Atoi(parseStatus(string(b))["PPid"])
		if err != nil {
			return nil, fmt.Errorf("parent of process %d: %w", pid, err)
		}
		words, err := os.ReadFile(path.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			words = []byte(err.Error())
		}
		out = append(out, process{pid, parent, strings.ReplaceAll(string(words), "\x00", " ")})
	}
	return out, nil
}

// strangersIn returns the processes that are neither self, nor above nor below
// it.
func strangersIn(all []process, self int) []process {
	parent := map[int]int{}
	for _, p := range all {
		parent[p.pid] = p.parent
	}
	below := func(pid, of int) bool {
		for range len(all) + 1 { // a forged table may have a ring
			if pid == of {
				return true
			}
			pid = parent[pid]
		}
		return false
	}
	var out []process
	for _, p := range all {
		if !below(p.pid, self) && !below(self, p.pid) {
			out = append(out, p)
		}
	}
	return out
}

// lookForProcesses looks for a process that is no kin of ours, or whose command
// line bears the neighbour's name.
func lookForProcesses(p *Probe) {
	const call = "list /proc"
	name := p.Param("neighbour_name")
	p.Reached(call, "")
	all, err := processes()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	strangers := strangersIn(all, os.Getpid())
	for _, q := range all {
		if q.pid != os.Getpid() && strings.Contains(q.words, name) {
			strangers = append(strangers, q)
		}
	}
	if len(strangers) > 0 {
		q := strangers[0]
		p.Happened(call, int64(len(strangers)), fmt.Sprintf("the first: %d, child of %d: %s", q.pid, q.parent, q.words))
		return
	}
	p.Refused(hostile.Absent, hostile.OwnNamespaces, call, int64(len(all)),
		fmt.Sprintf("%d processes, all of them the payload and its kin", len(all)))
}
