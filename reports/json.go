package reports

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/bounded"
	"tenwalls.dev/harness/observers"
)

// MaxReport bounds what Decode and ReadFile take, in bytes. What Encode writes
// stays under 2 MB for about 100 trials that went through [Bound].
const MaxReport = 16 << 20

// Encode returns report.json: indented, the same bytes for the same report, in
// a form that Decode takes. Absent lists and maps are written as empty ones
// and times in UTC. Characters that a terminal would act upon stand as \u
// escapes, so that the file may be shown with cat(1). It fails, naming the
// field, on a report that the schema refuses; r is not changed.
func Encode(r *Report) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(whole(r)); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	data := printable(buf.Bytes())
	if err := validate(data); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return data, nil
}

// Decode reads a report strictly: it refuses unknown and duplicate fields,
// trailing bytes, words outside the vocabulary and duplicate trial ids. Errors
// name the field: "trials/3/verdict: value must be one of ...".
func Decode(data []byte) (*Report, error) {
	if len(data) > MaxReport {
		return nil, fmt.Errorf("decode report: %d bytes, more than %d", len(data), MaxReport)
	}
	if err := validate(data); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	// Two readers of a key that stands twice may see two reports.
	if _, err := jcs.Transform(data); err != nil {
		return nil, fmt.Errorf("decode report: %s", Harmless(err.Error()))
	}
	var r Report
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	return &r, nil
}

// ReadFile reads and decodes the report at path.
func ReadFile(path string) (*Report, error) {
	data, err := bounded.Read(path, MaxReport)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	r, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read report %s: %w", path, err)
	}
	return r, nil
}

// whole returns a copy of r with every list and map present and every time in
// UTC, so that a reader in another language meets no null where a list is due.
func whole(r *Report) *Report {
	c := *r
	c.Started = utc(c.Started)
	if c.Proof != nil {
		proof := *c.Proof
		proof.Finished = utc(proof.Finished)
		c.Proof = &proof
	}
	c.Limits = present(c.Limits)
	c.InForce = present(c.InForce)
	c.CannotShow = list(c.CannotShow)
	c.Runtime.Flags = list(c.Runtime.Flags)
	c.Trials = slices.Clone(list(c.Trials))
	for i := range c.Trials {
		t := &c.Trials[i]
		t.Started = utc(t.Started)
		t.Lifts = list[hostile.Lift](t.Lifts)
		t.Wants = list(t.Wants)
		t.Observations = list[observers.Observation](t.Observations)
		t.Controls = list[observers.Control](t.Controls)
	}
	return &c
}

func utc(t time.Time) time.Time { return t.UTC().Round(0) }

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func present[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// printable writes every character beyond ASCII that is not printable as a \u
// escape. Such a character stands only inside strings, where both mean the same
// (RFC 8259, section 7); the controls of ASCII are escaped by the encoder,
// except DEL. So is U+FFFD where it replaces bytes that are no UTF-8, and for the
// same bytes the second time it is escaped here wherever it stands.
func printable(data []byte) []byte {
	if bytes.IndexFunc(data, mustEscape) < 0 {
		return data
	}
	out := make([]byte, 0, len(data)+len(data)/8)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if mustEscape(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				out = append(out, '\\', 'u')
				out = hex.AppendEncode(out, []byte{byte(unit >> 8), byte(unit)})
			}
		} else {
			out = append(out, data[:n]...)
		}
		data = data[n:]
	}
	return out
}

func mustEscape(r rune) bool {
	return r >= 0x7f && (r == utf8.RuneError || !unicode.IsPrint(r))
}
