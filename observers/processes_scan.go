package observers

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// process is one process of a scan, as it was read.
type process struct {
	identity
	parent, group, session int
	running                bool // not ended: a zombie runs no more, unless it leads threads that do
	exiting                bool // on its way out: it executes nothing of its program any more (PF_EXITING)
	inCgroup               bool
	remembered             bool // it was read by an earlier scan
}

// identity tells a process from a later one with the same pid. The inode of
// /proc/PID is the process's own: the kernel makes a new one for a new process.
// It may also make a new one for an old process, when memory is short.
type identity struct {
	pid   int
	inode uint64
}

// scanner reads a /proc. Reading a file of every process of a busy machine takes
// too long to be done every few milliseconds (about 8 us a process), so whoever
// scans reads only those that it has not read before.
type scanner struct {
	proc string
	dir  int // /proc itself, while it is open
	buf  []byte
	name []byte     // of the file that is read
	ids  []identity // of the last listing
}

// open holds /proc, so that each file is found from there.
func (s *scanner) open() error {
	dir, err := unix.Open(s.proc, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: s.proc, Err: err}
	}
	s.dir = dir
	if s.buf == nil {
		s.buf, s.name = make([]byte, 32<<10), make([]byte, 0, 32)
	}
	return nil
}

func (s *scanner) close() error { return unix.Close(s.dir) }

// list returns the machine's processes: one listing, no file is read.
func (s *scanner) list() (out []identity, err error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.entries()
}

// entries is list of a /proc that is open and was not listed yet. It is sorted by
// pid, as the kernel lists it, and good until the next.
func (s *scanner) entries() ([]identity, error) {
	s.ids = s.ids[:0]
	for {
		n, err := unix.ReadDirent(s.dir, s.buf)
		if err != nil {
			return nil, &os.PathError{Op: "list", Path: s.proc, Err: err}
		}
		if n == 0 {
			// The kernel's order is no promise, and a made /proc has another.
			slices.SortFunc(s.ids, func(a, b identity) int { return cmp.Compare(a.pid, b.pid) })
			return s.ids, nil
		}
		s.ids = appendEntries(s.ids, s.buf[:n])
	}
}

// appendEntries takes the folders with a number as name from what getdents64(2)
// returned: inode (8 bytes), offset (8), length (2), type (1), name with a NUL.
// The standard library parses the names only.
func appendEntries(out []identity, b []byte) []identity {
	for len(b) >= 19 {
		length := int(binary.NativeEndian.Uint16(b[16:]))
		if length < 19 || length > len(b) {
			return out
		}
		name, _, _ := bytes.Cut(b[19:length], []byte{0})
		if pid, err := strconv.Atoi(string(name)); err == nil {
			out = append(out, identity{pid, binary.NativeEndian.Uint64(b)})
		}
		b = b[length:]
	}
	return out
}

// kthreadd is the process that makes all kernel threads.
const kthreadd = 2

// one reads a process. One that has just ended is not running.
func (s *scanner) one(id identity) (process, error) {
	data, err := s.stat(id.pid)
	if ended(err) {
		return process{identity: id}, nil
	}
	if err != nil {
		return process{}, err
	}
	p, err := parseStat(data)
	if err != nil {
		return process{}, fmt.Errorf("%s/%d/stat: %w", s.proc, id.pid, err)
	}
	p.identity = id
	return p, nil
}

// stat reads /proc/PID/stat by three raw calls into one buffer. Opening and
// reading it wait for nothing, so Go's scheduler need not be told of each call,
// which together with the allocations of a name costs a fifth of the time.
func (s *scanner) stat(pid int) ([]byte, error) {
	s.name = append(strconv.AppendInt(s.name[:0], int64(pid), 10), "/stat\x00"...)
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(s.dir), uintptr(unsafe.Pointer(&s.name[0])), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return nil, &os.PathError{Op: "open", Path: fmt.Sprintf("%s/%d/stat", s.proc, pid), Err: errno}
	}
	n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&s.buf[0])), uintptr(len(s.buf)))
	if _, _, e := unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0); errno == 0 {
		errno = e
	}
	if errno != 0 {
		return nil, &os.PathError{Op: "read", Path: fmt.Sprintf("%s/%d/stat", s.proc, pid), Err: errno}
	}
	return s.buf[:n], nil
}

// ended is how /proc answers for a process that has just ended.
func ended(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)
}

// exitingFlag is PF_EXITING of the kernel's include/linux/sched.h, which stands in
// field 9 of proc_pid_stat(5).
const exitingFlag = 0x4

// parseStat reads fields 3 to 6, 9 and 20 of proc_pid_stat(5): state, parent,
// process group, session, flags and number of threads. The name, field 2, may
// hold anything, also brackets. A first thread that has ended is a zombie while
// others of its process go on.
func parseStat(data []byte) (p process, err error) {
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return p, errors.New("no name in brackets")
	}
	fields, number := 3, 0
	for field := range bytes.FieldsSeq(data[i+1:]) {
		switch fields {
		case 3:
			p.running = field[0] != 'Z' && field[0] != 'X'
		case 4:
			p.parent, err = strconv.Atoi(string(field))
		case 5:
			p.group, err = strconv.Atoi(string(field))
		case 6:
			p.session, err = strconv.Atoi(string(field))
		case 9:
			number, err = strconv.Atoi(string(field))
			p.exiting = number&exitingFlag != 0
		case 20:
			number, err = strconv.Atoi(string(field))
			p.running = p.running || number > 1
		}
		if fields++; err != nil || fields > 20 {
			return p, err
		}
	}
	return p, errors.New("cut short")
}

// errEnding says that a process is on its way out.
var errEnding = errors.New("the process is ending")

// groupsOf reads /proc/PID/cgroup of a process that is not ending. One that is
// counts as in the root of every hierarchy of version 1 from its first step out
// on, while it still has its memory and its files (kernel/cgroup/cgroup.c,
// proc_cgroup_show, and kernel/exit.c, do_exit), so that it says nothing of where
// the process was.
func groupsOf(h Host, pid int) (string, error) {
	groups, err := os.ReadFile(filepath.Join(h.Proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", err
	}
	if ending(h, strconv.Itoa(pid)) {
		return "", errEnding
	}
	return string(groups), nil
}

// ending tells whether a process has ended, or is on its way out.
func ending(h Host, proc string) bool {
	data, err := os.ReadFile(filepath.Join(h.Proc, proc, "stat"))
	if err != nil {
		return ended(err)
	}
	p, err := parseStat(data)
	return err == nil && p.exiting
}

// memberOf says whether a /proc/PID/cgroup, lines of id:controllers:path, names
// the group or one below it in any hierarchy.
func memberOf(data, group []byte) bool {
	for len(group) > 0 {
		i := bytes.Index(data, group)
		if i < 0 {
			return false
		}
		data = data[i+len(group):]
		if len(data) == 0 || data[0] == '\n' || data[0] == '/' {
			return true
		}
	}
	return false
}

// traces returns in words where a process's command line, environment or open
// files name one of the words. Paths match whole components only. A child of the
// harness that has not called execve(2) yet has the harness's own command line
// and holds what the harness holds: it is the harness, for an instant more.
func (s *scanner) traces(pid int, words []string) []string {
	dir := s.proc + "/" + strconv.Itoa(pid)
	var out []string
	own, err := os.ReadFile(s.proc + "/self/cmdline")
	if data, err2 := os.ReadFile(dir + "/cmdline"); err == nil && err2 == nil && len(own) > 0 && bytes.Equal(own, data) {
		return nil
	}
	for _, file := range []string{"cmdline", "environ"} {
		data, err := os.ReadFile(dir + "/" + file)
		if err != nil {
			continue // it ended, or is another namespace's: the other ways remain
		}
		for _, w := range words {
			if mentions(string(data), w) {
				out = append(out, fmt.Sprintf("%s names %s", file, w))
			}
		}
	}
	links := []string{dir + "/cwd", dir + "/root"}
	if fds, err := os.ReadDir(dir + "/fd"); err == nil {
		for _, fd := range fds {
			links = append(links, dir+"/fd/"+fd.Name())
		}
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		for _, w := range words {
			if mentions(target, w) {
				out = append(out, fmt.Sprintf("%s is %s", strings.TrimPrefix(link, dir+"/"), target))
				break // one link, one trace
			}
		}
	}
	return out
}

// mentions says whether s holds word with nothing of a longer name beside it.
func mentions(s, word string) bool {
	for word != "" {
		i := strings.Index(s, word)
		if i < 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || !nameByte(s[i-1])) && (end == len(s) || !nameByte(s[end])) {
			return true
		}
		s = s[i+1:]
	}
	return false
}

func nameByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '-' || b == '.'
}
