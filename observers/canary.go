package observers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Canary is the observer "canary": who opens and reads the canary files, by
// fanotify(7) (step 1 of the attempts). One fanotify group serves the whole
// run; each event goes to the watch in whose cgroup the acting process is.
//
// What the kernel reports: one event for each open and each read, with equal
// ones by one process merged while they wait in the queue, so a count is what
// happened at least. An open with O_PATH, a stat and a read through a memory
// mapping cause no event of their own; a mapping needs an open first.
//
// The runtime itself opens a file for reading (O_RDONLY|O_NONBLOCK) when the
// guest only walks to it, before it checks the guest's permission. So one "open"
// without a "read" is what a refused attempt and a mere stat look like; what the
// guest was refused shows in "reads", and a read through a mapping in neither.
//
// An inode is watched, not a path, so bind mounts of the file are covered. A
// canary in an overlay has to be named by its path in the overlay: a mark there
// does not see opens of the lower file, and whether a mark on the lower file
// sees opens through the overlay depends on the kernel (Linux 6.18 shows them).
type Canary struct {
	host   Host
	group  *os.File
	files  map[inode]string
	closed chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	watches map[*canaryWatch]bool
	own     map[string]accesses // by the harness, per file
	lost    error
}

// accesses counts what happened to a file.
type accesses struct{ opens, reads int64 }

// NewCanary marks the files, which must exist and not be empty. It needs
// CAP_SYS_ADMIN. Close it at the end of the run.
func NewCanary(h Host, files []string) (*Canary, error) {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK|unix.FAN_UNLIMITED_QUEUE, unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make fanotify group (needs CAP_SYS_ADMIN): %w", err)
	}
	c := &Canary{
		host: h, group: os.NewFile(uintptr(fd), "fanotify"), files: map[inode]string{}, closed: make(chan struct{}),
		watches: map[*canaryWatch]bool{}, own: map[string]accesses{},
	}
	for _, file := range files {
		var st unix.Stat_t
		err := unix.Stat(file, &st)
		if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size == 0) {
			err = errors.New("not a regular file with bytes in it")
		}
		if err == nil {
			err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN|unix.FAN_ACCESS, unix.AT_FDCWD, file)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("mark canary %s: %w", file, err), c.group.Close())
		}
		c.files[inode{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino}] = file
	}
	raw, err := c.group.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read fanotify group: %w", err), c.group.Close())
	}
	go func() {
		defer close(c.closed)
		// The function asks to be called again whenever the group has events; Read
		// returns when the group is closed.
		_ = raw.Read(func(uintptr) bool { c.drain(); return false })
	}()
	return c, nil
}

// Name returns "canary".
func (*Canary) Name() string { return "canary" }

// Close ends the reader and removes all marks.
func (c *Canary) Close() error {
	err := c.group.Close()
	<-c.closed
	return err
}

// drain takes all waiting events. When it returns, every event that had
// happened before the call has been attributed.
func (c *Canary) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	buffer := make([]byte, 16<<10)
	for {
		// The descriptor itself, because os.File.Read would wait for an event.
		var n int
		var readErr error
		raw, err := c.group.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { n, readErr = unix.Read(int(fd), buffer) })
		}
		switch {
		case errors.Is(readErr, unix.EINTR):
			continue
		case errors.Is(readErr, unix.EAGAIN) || errors.Is(err, os.ErrClosed):
			return
		case err != nil || readErr != nil:
			c.lost = errors.Join(c.lost, fmt.Errorf("read fanotify events: %w", errors.Join(err, readErr)))
			return
		}
		events, err := parseFanotify(bytes.NewReader(buffer[:n]))
		c.lost = errors.Join(c.lost, err)
		for _, event := range events {
			c.attribute(event)
		}
	}
}

func (c *Canary) attribute(event unix.FanotifyEventMetadata) {
	if event.Mask&unix.FAN_Q_OVERFLOW != 0 {
		c.lost = errors.Join(c.lost, errors.New("fanotify queue overflowed"))
	}
	if event.Fd < 0 {
		return
	}
	var st unix.Stat_t
	err := errors.Join(unix.Fstat(int(event.Fd), &st), unix.Close(int(event.Fd)))
	file, ours := c.files[inode{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino}]
	if err != nil || !ours {
		c.lost = errors.Join(c.lost, fmt.Errorf("event for an unknown file: %w", err))
		return
	}
	var seen accesses
	if event.Mask&unix.FAN_OPEN != 0 {
		seen.opens = 1
	}
	if event.Mask&unix.FAN_ACCESS != 0 {
		seen.reads = 1
	}
	groups, err := groupsOf(c.host, int(event.Pid))
	if int(event.Pid) == os.Getpid() && err == nil { // seen is what can also be attributed
		c.own[file] = accesses{c.own[file].opens + seen.opens, c.own[file].reads + seen.reads}
	}
	c.tell(int(event.Pid), file, seen, groups, err == nil)
}

// tell hands what a process did to every watch. One that has ended and was in a
// sample of some job is that job's, and for every other job somebody else's.
func (c *Canary) tell(pid int, file string, seen accesses, groups string, alive bool) {
	known := alive
	for watch := range c.watches {
		known = known || watch.pids[pid]
	}
	for watch := range c.watches {
		watch.event(pid, file, seen, groups, alive || known && !watch.pids[pid])
	}
}

// parseFanotify reads a buffer of events (fanotify(7), "Reading fanotify events").
func parseFanotify(r io.Reader) ([]unix.FanotifyEventMetadata, error) {
	var events []unix.FanotifyEventMetadata
	for {
		var event unix.FanotifyEventMetadata
		err := binary.Read(r, binary.NativeEndian, &event)
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		size := int64(event.Event_len) - int64(unsafe.Sizeof(event))
		if err == nil && (event.Vers != unix.FANOTIFY_METADATA_VERSION || size < 0) {
			err = fmt.Errorf("version %d, length %d", event.Vers, event.Event_len)
		}
		if err == nil {
			_, err = io.CopyN(io.Discard, r, size)
		}
		if err != nil {
			return events, fmt.Errorf("parse fanotify event: %w", err)
		}
		events = append(events, event)
	}
}

// inCgroup tells whether one line of /proc/PID/cgroup (cgroups(7),
// "hierarchy:controllers:path") lies at or below a cgroup.
func inCgroup(groups, cgroup string) bool {
	for line := range strings.Lines(groups) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(parts) == 3 && pathWithin(parts[2], cgroup) {
			return true
		}
	}
	return false
}

// Control opens and reads every canary in the harness itself, and passes when
// the group reports an open and a read of each by the harness, whose cgroup is
// looked up as a job's is.
func (c *Canary) Control(context.Context) Control {
	result := Control{
		Observer: c.Name(), Effect: "the harness opens each canary and reads from it",
		Want: "an open and a read of each canary by the harness",
	}
	c.drain()
	before := c.counts()
	var missed []string
	for _, file := range c.files {
		f, err := os.Open(file)
		if err == nil {
			_, err = f.Read(make([]byte, 1))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			result.Reason = err.Error()
			return result
		}
	}
	c.drain()
	after := c.counts()
	for _, file := range c.files {
		opens, reads := after[file].opens-before[file].opens, after[file].reads-before[file].reads
		result.Seen += fmt.Sprintf("%s: %d opens, %d reads; ", file, opens, reads)
		if opens < 1 || reads < 1 {
			missed = append(missed, file)
		}
	}
	result.Passed = len(missed) == 0 && len(c.files) > 0
	if !result.Passed {
		result.Reason = fmt.Sprintf("not seen: %q", missed)
	}
	return result
}

func (c *Canary) counts() map[string]accesses {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make(map[string]accesses, len(c.own))
	for file, n := range c.own {
		counts[file] = n
	}
	return counts
}
