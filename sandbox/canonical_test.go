package sandbox

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		name string
		in   any
		want string // empty when refused
	}{
		// RFC 8785 section 3.2.3: members sort by UTF-16 code units.
		{"order", json.RawMessage(`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`),
			"{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}"},
		// RFC 8785 section 3.2.2.2: only what must be is escaped.
		{"strings", "<&>\u2028\x0f\n\\\"/", "\"<&>\u2028\\u000f\\n\\\\\\\"/\""},
		{"space and order", json.RawMessage("{ \"b\": [1, 2],\n \"a\": null }"), `{"a":null,"b":[1,2]}`},
		{"fraction", 0.5, "0.5"},
		{"largest integer", int64(1<<53 - 1), "9007199254740991"},
		{"smallest integer", int64(-(1<<53 - 1)), "-9007199254740991"},
		{"replacement character, spelt out", "\ufffd", "\"\ufffd\""},
		{"its escape, as text", `\ufffd`, `"\\ufffd"`},
		{"digits in a string", "9007199254740993", `"9007199254740993"`},

		{"2^53", int64(1 << 53), ""},
		{"2^53+1", int64(1<<53 + 1), ""},
		{"-2^53", int64(-1 << 53), ""},
		{"largest uint64", uint64(math.MaxUint64), ""},
		{"deep inside", map[string]any{"a": []any{1, map[string]any{"b": int64(1<<53 + 1)}}}, ""},
		{"rounds to 2^53", json.RawMessage("9007199254740991.9"), ""},
		{"exponent", json.RawMessage("1e300"), ""},
		{"out of range", json.RawMessage("1e400"), ""},
		{"not UTF-8", "a\xff", ""},
		{"member name not UTF-8", map[string]int{"\xff": 1}, ""},
		{"not UTF-8 after an escape", "\\\xff", ""},
		{"member twice", json.RawMessage(`{"a":1,"a":2}`), ""},
		{"infinity", math.Inf(1), ""},
		{"function", func() {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Canonical(c.in)
			if string(got) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("Canonical() = %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestCanonicalSaysWhichNumber(t *testing.T) {
	_, err := Canonical(struct{ N uint64 }{1<<53 + 1})
	if err == nil || !strings.Contains(err.Error(), "9007199254740993 is beyond 2^53-1") {
		t.Errorf("error does not name the number: %v", err)
	}
}

// FuzzCanonical holds that a canonical form is its own canonical form, and
// that different texts never share one.
func FuzzCanonical(f *testing.F) {
	f.Add("a", "b", int64(1))
	f.Add("\xff", "\ufffd", int64(1)<<53)
	f.Add(`\ufffd`, "\\\xff", int64(-1))
	f.Fuzz(func(t *testing.T, a, b string, n int64) {
		type pair struct {
			A string `json:"a"`
			N int64  `json:"n"`
		}
		first, err := Canonical(pair{a, n})
		if err != nil {
			return
		}
		var back pair
		if err := json.Unmarshal(first, &back); err != nil || back != (pair{a, n}) {
			t.Fatalf("%s decodes to %+v, %v", first, back, err)
		}
		again, err := Canonical(json.RawMessage(first))
		if err != nil || string(again) != string(first) {
			t.Fatalf("%s became %s, %v", first, again, err)
		}
		if second, err := Canonical(pair{b, n}); err == nil && a != b && string(first) == string(second) {
			t.Fatalf("%q and %q share %s", a, b, first)
		}
	})
}
