package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
	"unicode/utf8"
)

// What a line is about.
const (
	eventBegun    = "begun"
	eventFinished = "finished"
)

// record is one line.
type record struct {
	Event string `json:"event"`
	Entry
}

// Bounds on what the caller hands over, so that no line grows beyond maxLine
// also where JSON writes six bytes for one.
const (
	maxLine   = 256 << 10 // bytes, the line break included
	maxReason = 256       // bytes
	maxWhy    = 1024      // bytes
	maxFolder = 4096      // bytes: PATH_MAX
	maxIDs    = 128       // of each kind; the counts by verdict are whole
	maxID     = 80        // bytes
)

// The checksum stands last and covers every byte before its comma.
const (
	sumFormat = `,"crc":"%08x"}`
	sumSize   = len(`,"crc":"00000000"}`)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns the line of a record with its line break.
func encode(r record) ([]byte, error) {
	if r.Run == "" || r.Started.IsZero() {
		return nil, errors.New("an entry needs the run's id and when it started")
	}
	r.Reason, r.Why, r.Folder = cut(r.Reason, maxReason), cut(r.Why, maxWhy), cut(r.Folder, maxFolder)
	r.Fell, r.Misnamed = few(r.Fell), few(r.Misnamed)
	for _, t := range []*time.Time{&r.Started, &r.Finished, &r.Expires} {
		*t = t.UTC().Round(0)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	body = body[:len(body)-1]
	line := fmt.Appendf(body, sumFormat, crc32.Checksum(body, castagnoli))
	if len(line) >= maxLine {
		return nil, fmt.Errorf("encode entry: %d bytes, more than %d", len(line), maxLine)
	}
	return append(line, '\n'), nil
}

// decode reads a line without its line break.
func decode(line []byte) (record, error) {
	n := len(line) - sumSize
	if n < 1 {
		return record{}, errors.New("too short for an entry")
	}
	if want := fmt.Sprintf(sumFormat, crc32.Checksum(line[:n], castagnoli)); string(line[n:]) != want {
		return record{}, errors.New("torn or altered: its checksum is not that of its bytes")
	}
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return record{}, fmt.Errorf("no entry: %w", err)
	}
	// Only what may never be: a later harness may write fields of its own.
	if r.Run == "" || r.Started.IsZero() || r.Event == eventFinished != finishedWith(r.Outcome) || r.Event != eventFinished && r.Event != eventBegun {
		return record{}, errors.New("no entry: its run, event or outcome is none")
	}
	return r, nil
}

func few(ids []string) []string {
	if len(ids) == 0 {
		return nil
	}
	out := make([]string, 0, min(len(ids), maxIDs))
	for _, id := range ids[:min(len(ids), maxIDs)] {
		out = append(out, cut(id, maxID))
	}
	return out
}

// cut is s without bytes that are no UTF-8, in at most limit bytes.
func cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
