package runsc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// bounds on what is read of the runtime's logs, and on what is told.
const (
	maxLog    = 1 << 20
	maxReason = 600
	keptLogs  = 20 // failed starts whose logs are kept
)

// consequences are what runsc says when another of its processes has already
// said why.
var consequences = []string{
	"cannot read client sync file", "Error reading mounts file", "unexpected EOF", "waiting for sandbox to start",
	"urpc method", "connection reset by peer",
}

// startFailure reads the runtime's error log (lines or a run of JSON objects
// {"msg","level","time"}) and returns the reason in the runtime's own words,
// shortened. It is empty when the runtime told of no error. The sandbox, the
// gofer and the command write to the log one after the other; the first that
// is no mere consequence is the reason.
func startFailure(log string) (string, error) {
	f, err := os.Open(log)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the runtime's log: %w", err)
	}
	defer f.Close()
	var told []string
	dec := json.NewDecoder(io.LimitReader(f, maxLog))
	for {
		var line struct{ Msg, Level string }
		if dec.Decode(&line) != nil {
			break // the end, or bytes that are no log: what came before counts
		}
		if line.Level == "error" || line.Level == "fatal" {
			told = append(told, line.Msg)
		}
	}
	if len(told) == 0 {
		return "", nil
	}
	i := slices.IndexFunc(told, func(m string) bool {
		return !slices.ContainsFunc(consequences, func(c string) bool { return strings.Contains(m, c) })
	})
	return shorten(told[max(i, 0)]), nil
}

// shorten makes one bounded line that a terminal can show.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "..."
	}
	return s
}

// lastWords is the runtime's stderr when its log tells nothing (an old or a
// broken runtime): the last line, shortened. Of a runtime that shows its usage it
// is the last line before that: a flag that it does not know, say.
func lastWords(stderr []byte) string {
	lines := bytes.Split(bytes.TrimSpace(stderr), []byte("\n"))
	if i := slices.IndexFunc(lines, func(l []byte) bool { return bytes.HasPrefix(l, []byte("Usage:")) }); i > 0 {
		lines = bytes.Split(bytes.TrimSpace(bytes.Join(lines[:i], []byte("\n"))), []byte("\n"))
	}
	return shorten(string(lines[len(lines)-1]))
}

// stderrLog is the runtime's stderr among its logs. A guest's output may be in
// it, so it is bounded as that is.
const stderrLog = "stderr.txt"

// keepLogs moves a failed job's logs, and what the runtime said on stderr, out of
// the job's folder and forgets the oldest ones. It returns where they are: empty
// when there is nothing to read.
func keepLogs(logs, dir, job string, stderr []byte) (string, error) {
	if len(stderr) > 0 {
		if err := os.WriteFile(filepath.Join(logs, stderrLog), stderr, 0o600); err != nil {
			return "", fmt.Errorf("keep the runtime's stderr: %w", err)
		}
	}
	told, err := os.ReadDir(logs)
	if err != nil {
		return "", fmt.Errorf("keep the runtime's logs: %w", err)
	}
	if len(told) == 0 {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep the runtime's logs: %w", err)
	}
	to := filepath.Join(dir, job)
	if err := os.Rename(logs, to); err != nil {
		return "", fmt.Errorf("keep the runtime's logs: %w", err)
	}
	entries, err := os.ReadDir(dir) // sorted; ids sort by time
	if err != nil {
		return to, fmt.Errorf("keep the runtime's logs: %w", err)
	}
	for _, e := range entries[:max(0, len(entries)-keptLogs)] {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return to, fmt.Errorf("forget old logs: %w", err)
		}
	}
	return to, nil
}
