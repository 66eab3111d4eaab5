package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
)

// journal is a handler whose lines bear the priority that systemd-journald takes
// from their beginning (sd-daemon(3), SD_WARNING and the others), so that
// journalctl -p finds them.
type journal struct {
	slog.Handler
	line *marked
}

// marked writes each line whole, with its priority before it.
type marked struct {
	sync.Mutex
	to       io.Writer
	priority int
}

func (m *marked) Write(line []byte) (int, error) {
	n, err := m.to.Write(append(fmt.Appendf(nil, "<%d>", m.priority), line...))
	return max(0, n-len("<6>")), err
}

func newJournal(w io.Writer) journal {
	m := &marked{to: w}
	return journal{slog.NewJSONHandler(m, nil), m}
}

func (j journal) Handle(ctx context.Context, r slog.Record) error {
	j.line.Lock()
	defer j.line.Unlock()
	switch {
	case r.Level >= slog.LevelError:
		j.line.priority = 3
	case r.Level >= slog.LevelWarn:
		j.line.priority = 4
	case r.Level >= slog.LevelInfo:
		j.line.priority = 6
	default:
		j.line.priority = 7
	}
	return j.Handler.Handle(ctx, r)
}

func (j journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	j.Handler = j.Handler.WithAttrs(attrs)
	return j
}

func (j journal) WithGroup(name string) slog.Handler {
	j.Handler = j.Handler.WithGroup(name)
	return j
}

// inJournal tells whether a file is the journal's, as the service manager says by
// device and inode (systemd.exec(5), JOURNAL_STREAM): standard error can have been
// led elsewhere since.
func inJournal(w io.Writer, stream string) bool {
	f, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	st, err := f.Stat()
	if err != nil {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", sys.Dev, sys.Ino)
}
