package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"tenwalls.dev/harness/internal/durable"
)

const (
	lockWithin = 10 * time.Second
	lockAgain  = 10 * time.Millisecond
	maxDamage  = 20 // damaged lines that are told one by one
)

// append adds one line and waits until it is on the disk. Lines are only ever
// added: one that a crash tore is ended by a line break, and stays to be seen.
func (h *History) append(r record) (err error) {
	line, err := encode(r)
	if err != nil {
		return err
	}
	dir := filepath.Dir(h.path)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	unlock, err := h.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	_, before := os.Lstat(h.path)
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, torn, err := tail(f)
	if err != nil {
		return err
	}
	if torn {
		line = append([]byte{'\n'}, line...)
	}
	if _, err = f.Write(line); err == nil {
		err = f.Sync()
	}
	if err != nil { // what of it was written is taken back: the lock is ours
		return errors.Join(durable.Remedied(err), f.Truncate(size))
	}
	if errors.Is(before, fs.ErrNotExist) {
		return durable.SyncFolder(dir)
	}
	return nil
}

// lock keeps other writers out. Its file is root's alone, and another than the
// ledger: whoever can open a file, to read only, can hold a lock on it (flock(2)).
func (h *History) lock() (unlock func() error, err error) {
	l := flock.New(h.path+".lock", flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	ok, err := l.TryLockContext(ctx, lockAgain)
	switch {
	case errors.Is(err, context.DeadlineExceeded) || err == nil && !ok:
		return nil, fmt.Errorf("lock %s: another process has held it for %s", l.Path(), lockWithin)
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", l.Path(), durable.Remedied(err))
	}
	return l.Close, nil
}

// tail tells the size of the file, and whether its last line lacks its end.
func tail(f *os.File) (size int64, torn bool, err error) {
	st, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	if !st.Mode().IsRegular() {
		return 0, false, fmt.Errorf("%s is no regular file", f.Name())
	}
	if st.Size() == 0 {
		return 0, false, nil
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, st.Size()-1); err != nil {
		return 0, false, err
	}
	return st.Size(), last[0] != '\n', nil
}

// read returns every whole line, and what is wrong with the others. A file
// without line breaks takes no more memory than a line.
func (h *History) read() (records []record, damage []string, err error) {
	f, err := os.Open(h.path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewReaderSize(f, maxLine)
	more := 0
	fault := func(n int, what string) {
		if len(damage) == maxDamage {
			more++
			return
		}
		damage = append(damage, fmt.Sprintf("%s: line %d: %s", h.path, n, what))
	}
	for n := 1; ; n++ {
		line, long, ended, _, err := nextLine(b)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", h.path, err)
		}
		if ended && !long && len(line) == 0 {
			break
		}
		r, fail := decode(line)
		switch {
		case long:
			fault(n, errTooLong.Error())
		case fail == nil: // whole, also when a crash kept its line break back
			records = append(records, r)
		case ended:
			fault(n, "the last line is torn: a crash cut it short, or it is just being written")
		default:
			fault(n, fail.Error())
		}
		if ended {
			break
		}
	}
	if more > 0 {
		damage = append(damage, fmt.Sprintf("%s: ... and %d more damaged lines", h.path, more))
	}
	return records, damage, nil
}

var errTooLong = fmt.Errorf("more than %d bytes: no entry", maxLine)

// nextLine reads a line, without its line break, valid until the next call. long
// says that it did not fit, ended that it has no line break because the file ends
// there. size counts all bytes that were read.
func nextLine(b *bufio.Reader) (line []byte, long, ended bool, size int64, err error) {
	line, err = b.ReadSlice('\n')
	size = int64(len(line))
	long = errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		var rest []byte
		rest, err = b.ReadSlice('\n')
		size += int64(len(rest))
	}
	if ended = errors.Is(err, io.EOF); ended {
		err = nil
	}
	if err == nil && !ended && !long {
		line = line[:len(line)-1]
	}
	return line, long, ended, size, err
}
