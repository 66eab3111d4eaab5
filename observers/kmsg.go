package observers

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

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

// kmsgMark is where the records, the losses and the suppressed lines of one
// follower begin.
type kmsgMark struct{ records, lost, suppressed int }

// follow opens the log at its end for the first follower. After an error there
// is nothing to leave.
func (k *kmsg) follow() (kmsgMark, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.followers == 0 {
		fd, err := k.open()
		if err != nil {
			return kmsgMark{}, err
		}
		if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
			return kmsgMark{}, errors.Join(fmt.Errorf("follow the kernel log %s: seek to its end: %w", k.name, err), unix.Close(fd))
		}
		k.fd, k.parser, k.records, k.lost, k.failure = fd, oomParser{}, nil, 0, nil
	}
	k.drain()
	if k.failure != nil && k.followers == 0 {
		return kmsgMark{}, errors.Join(k.failure, unix.Close(k.fd))
	}
	k.followers++
	return kmsgMark{len(k.records), k.lost, k.parser.suppressed}, nil
}

func (k *kmsg) open() (fd int, err error) {
	fd, err = unix.Open(k.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("follow the kernel log %s: %w: run as root with CAP_SYSLOG, or set kernel.dmesg_restrict=0", k.name, err)
	}
	return fd, nil
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

// since returns the records from a mark on, after reading what there is, and how
// many oom-kill lines the kernel said it left out. The error says that some
// records may be missing.
func (k *kmsg) since(m kmsgMark) (records []oomRecord, suppressed int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drain()
	err = k.failure
	if k.lost > m.lost {
		err = errors.Join(err, fmt.Errorf("follow the kernel log %s: records were overwritten before they were read: enlarge the log (log_buf_len=)", k.name))
	}
	return k.records[m.records:], k.parser.suppressed - m.suppressed, err
}

// drain reads until there is no more.
func (k *kmsg) drain() {
	if k.failure != nil {
		return
	}
	lost, err := k.readAll(k.fd, func(record []byte) {
		if r, ok := k.parser.parse(record); ok {
			k.records = append(k.records, r)
		}
	})
	k.lost += lost
	k.failure = err
}

// history returns the victims in the whole of the log as it is kept now, which
// takes some milliseconds.
func (k *kmsg) history() (out []oomRecord, err error) {
	fd, err := k.open() // at the oldest record that is kept
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	var p oomParser
	_, err = k.readAll(fd, func(record []byte) {
		if r, ok := p.parse(record); ok {
			out = append(out, r)
		}
	})
	return out, err
}

// readAll hands out records until there is no more, and returns how often some
// were lost. The device gives one record a read; a recorded file gives many, one
// a line, which are split here.
func (k *kmsg) readAll(fd int, take func(record []byte)) (lost int, err error) {
	buf := make([]byte, 8192) // the longest record, CONSOLE_EXT_LOG_MAX
	for {
		n, err := k.read(fd, buf)
		switch {
		case errors.Is(err, unix.EAGAIN), err == nil && n == 0:
			return lost, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EPIPE): // the next read goes on at the oldest record left
			lost++
		case err != nil:
			return lost, fmt.Errorf("follow the kernel log %s: %w", k.name, err)
		default:
			for line := range bytes.Lines(buf[:n]) {
				take(bytes.TrimSuffix(line, []byte("\n")))
			}
		}
	}
}
