package observers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one live process of a scan.
type process struct {
	identity
	parent, group, session int
	inCgroup               bool
}

// identity tells a process from a later one with the same pid. The inode of
// /proc/PID is the process's own: the kernel makes a new one for a new process.
// It may also make a new one for an old process, when memory is short.
type identity struct {
	pid   int
	inode uint64
}

// scanner reads a /proc, three system calls a file. Reading two files of every
// process of a busy machine takes too long to be done every few milliseconds
// (about 18 us a process), so it reads only those that skip does not hold.
type scanner struct {
	proc string
	buf  []byte
}

// list returns the machine's processes: one listing, no file is read.
func (s *scanner) list() ([]identity, error) {
	if s.buf == nil {
		s.buf = make([]byte, 32<<10)
	}
	dir, err := unix.Open(s.proc, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: s.proc, Err: err}
	}
	defer unix.Close(dir)
	var out []identity
	for {
		n, err := unix.ReadDirent(dir, s.buf)
		if err != nil {
			return nil, &os.PathError{Op: "list", Path: s.proc, Err: err}
		}
		if n == 0 {
			return out, nil
		}
		out = appendEntries(out, s.buf[:n])
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

// scan returns the machine's processes, without those that skip says are of no
// interest, without zombies, which run no more, without kernel threads and
// without the caller. A process that ends meanwhile is left out.
func (s *scanner) scan(cgroup string, skip func(identity) bool) ([]process, error) {
	list, err := s.list()
	if err != nil {
		return nil, fmt.Errorf("scan processes: %w", err)
	}
	dir, err := unix.Open(s.proc, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("scan processes: %w", &os.PathError{Op: "open", Path: s.proc, Err: err})
	}
	defer unix.Close(dir)
	var found []process
	for _, id := range list {
		if id.pid == os.Getpid() || skip(id) {
			continue
		}
		p, alive, err := s.one(dir, id, []byte(cgroup))
		if err != nil && !ended(err) {
			return nil, fmt.Errorf("scan processes: %w", err)
		}
		if err == nil && alive {
			found = append(found, p)
		}
	}
	return found, nil
}

// kthreadd is the process that makes all kernel threads.
const kthreadd = 2

func (s *scanner) one(dir int, id identity, group []byte) (p process, alive bool, err error) {
	name := strconv.Itoa(id.pid)
	data, err := s.read(dir, name, "/stat")
	if err != nil {
		return p, false, err
	}
	p, alive, err = parseStat(data)
	if err != nil {
		return p, false, fmt.Errorf("%s/%s/stat: %w", s.proc, name, err)
	}
	if !alive || p.parent == kthreadd {
		return p, false, nil
	}
	data, err = s.read(dir, name, "/cgroup")
	if err != nil {
		return p, false, err
	}
	p.identity, p.inCgroup = id, memberOf(data, group)
	return p, true, nil
}

func (s *scanner) read(dir int, name, file string) ([]byte, error) {
	fd, err := unix.Openat(dir, name+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: s.proc + "/" + name + file, Err: err}
	}
	n, err := unix.Read(fd, s.buf)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return nil, &os.PathError{Op: "read", Path: s.proc + "/" + name + file, Err: err}
	}
	return s.buf[:n], nil
}

// ended is how /proc answers for a process that has just ended.
func ended(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)
}

// parseStat reads fields 3 to 6 of proc_pid_stat(5): state, parent, process
// group and session. The name, field 2, may hold anything, also brackets.
func parseStat(data []byte) (p process, alive bool, err error) {
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return p, false, errors.New("no name in brackets")
	}
	fields := bytes.Fields(data[i+1:])
	if len(fields) < 4 {
		return p, false, errors.New("cut short")
	}
	for j, to := range []*int{&p.parent, &p.group, &p.session} {
		if *to, err = strconv.Atoi(string(fields[j+1])); err != nil {
			return p, false, err
		}
	}
	return p, fields[0][0] != 'Z' && fields[0][0] != 'X', nil
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
