package hostile

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const ours = "NONCE"

func askedAll(string, string) bool { return true }

// askedShadow is a job that was asked for one route alone.
func askedShadow(attempt, route string) bool { return attempt == "credentials" && route == "shadow" }

// line is a claim of ours as the payload prints it, with fields put over it;
// a nil value leaves the field out.
func line(over map[string]any) string {
	fields := map[string]any{
		"nonce": ours, "attempt": "credentials", "route": "shadow", "event": "refused",
		"kind": "EACCES", "place": "file ownership", "call": "openat(/etc/shadow)", "note": "root 0600",
	}
	for k, v := range over {
		if fields[k] = v; v == nil {
			delete(fields, k)
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func bare(event string) map[string]any {
	return map[string]any{"event": event, "kind": nil, "place": nil}
}

// padded is a good claim of exactly n bytes.
func padded(n int) string {
	call := strings.Repeat("c", MaxNote)
	l := line(map[string]any{"call": call, "note": ""})
	return line(map[string]any{"call": call, "note": strings.Repeat("n", n-len(l))})
}

// Each rule by which one line is kept, is foreign, or is noise.
func TestParseClaimsOneLine(t *testing.T) {
	kept, foreign, noise, nothing := [3]int{1, 0, 0}, [3]int{0, 1, 0}, [3]int{0, 0, 1}, [3]int{}
	for _, tt := range []struct {
		name, in string
		want     [3]int // kept, foreign, noise
	}{
		{"refusal", line(nil), kept},
		{"white space before the object", " \t" + line(nil), kept},
		{"escaped control bytes are data", line(map[string]any{"note": "\x1b[2J\x00"}), kept},
		{"reached", line(bare("reached")), kept},
		{"happened", line(bare("happened")), kept},
		{"progress", line(map[string]any{"event": "progress", "kind": nil, "place": nil, "count": 7}), kept},
		{"failed", line(bare("failed")), kept},
		{"reading", line(bare("reading")), kept},
		{"longest note", line(map[string]any{"note": strings.Repeat("n", MaxNote)}), kept},
		{"longest call", line(map[string]any{"call": strings.Repeat("n", MaxNote)}), kept},
		{"longest line", padded(MaxClaimBytes - 1), kept},

		{"another nonce", line(map[string]any{"nonce": "OTHER"}), foreign},
		{"nonce in another case", line(map[string]any{"nonce": "nonce"}), foreign},
		{"longer nonce", line(map[string]any{"nonce": ours + "X"}), foreign},
		{"no nonce", line(map[string]any{"nonce": nil}), foreign},
		{"another attempt", line(map[string]any{"attempt": "disk"}), foreign},
		{"another route", line(map[string]any{"route": "ssh-key"}), foreign},
		{"no route", line(map[string]any{"route": nil}), foreign},

		{"nothing", "", nothing},
		{"empty lines", "\n\n\n", nothing},
		{"words", "hello", noise},
		{"null", "null", noise},
		{"a number", "7", noise},
		{"a list", "[" + line(nil) + "]", noise},
		{"an empty object", "{}", noise},
		{"cut short", line(nil)[:40], noise},
		{"a byte after", line(nil) + " ", noise},
		{"carriage return after", line(nil) + "\r", noise},
		{"two on a line", line(nil) + line(nil), noise},
		{"unknown field", line(map[string]any{"verdict": "held"}), noise},
		{"wrong type", line(map[string]any{"count": "7"}), noise},
		{"count too large", strings.TrimSuffix(line(nil), "}") + `,"count":9223372036854775808}`, noise},
		{"unknown event", line(bare("held")), noise},
		{"no event", line(map[string]any{"event": nil}), noise},
		{"event in another case", line(map[string]any{"event": "Refused"}), noise},
		{"refused without a kind", line(map[string]any{"kind": nil}), noise},
		{"refused without a place", line(map[string]any{"place": nil}), noise},
		{"unknown kind", line(map[string]any{"kind": "EWHATEVER"}), noise},
		{"unknown place", line(map[string]any{"place": "somewhere"}), noise},
		{"happened with a kind", line(map[string]any{"event": "happened", "place": nil}), noise},
		{"reached with a place", line(map[string]any{"event": "reached", "kind": nil}), noise},
		{"note too long", line(map[string]any{"note": strings.Repeat("n", MaxNote+1)}), noise},
		{"call too long", line(map[string]any{"call": strings.Repeat("n", MaxNote+1)}), noise},
		{"note that grows beyond the bound when read", strings.Replace(line(nil), "root 0600", strings.Repeat("\xff", MaxNote/2), 1), noise},
		{"line too long", padded(MaxClaimBytes), noise},
		{"terminal escapes", "\x1b[2J\x1b]0;" + line(nil) + "\x07", noise},
		{"binary", "\x00\xff\xfe\x80" + line(nil), noise},
		{"ten megabytes in one line", strings.Repeat("A", 10<<20), noise},
		{"a claim behind ten megabytes", strings.Repeat(" ", 10<<20) + line(nil), noise},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, end := range []string{"", "\n"} {
				got, err := ParseClaims(strings.NewReader(tt.in+end), ours, askedShadow)
				if counted := [3]int{len(got.Claims), got.Foreign, got.Noise}; err != nil || counted != tt.want || got.Beyond != 0 {
					t.Errorf("end %q: kept, foreign, noise = %v, %d beyond, %v; want %v", end, counted, got.Beyond, err, tt.want)
				}
			}
		})
	}
}

func TestParseClaimsKeepsEveryFieldAndTheOrder(t *testing.T) {
	in := "noise\n" + line(bare("reached")) + "\n" + strings.Repeat("x", 3*MaxClaimBytes) + "\n" +
		line(map[string]any{"count": 67108864}) + "\n" + line(map[string]any{"nonce": "OTHER"}) + "\n" + line(bare("progress"))
	got, err := ParseClaims(iotest.OneByteReader(strings.NewReader(in)), ours, askedShadow)
	if err != nil || len(got.Claims) != 3 || got.Noise != 2 || got.Foreign != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := Claim{
		Nonce: ours, Attempt: "credentials", Route: "shadow", Event: Stopped, Kind: EACCES, Place: FileOwnership,
		Call: "openat(/etc/shadow)", Count: 67108864, Note: "root 0600",
	}
	if got.Claims[0].Event != Reached || got.Claims[1] != want || got.Claims[2].Event != Progress {
		t.Errorf("claims %+v", got.Claims)
	}
}

// A run without a nonce knows no claim of its own.
func TestParseClaimsWithoutANonce(t *testing.T) {
	got, err := ParseClaims(strings.NewReader(line(map[string]any{"nonce": ""})), "", askedAll)
	if err != nil || len(got.Claims) != 0 || got.Foreign != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseClaimsBeyondTheBound(t *testing.T) {
	const lines = 100_000
	one := line(nil) + "\n"
	got, err := ParseClaims(io.LimitReader(&repeated{one}, int64(lines*len(one))), ours, askedAll)
	if err != nil || len(got.Claims) != MaxClaims || got.Beyond != lines-MaxClaims || got.Noise != 0 || got.Foreign != 0 {
		t.Errorf("%d kept, %d beyond, %d noise, %d foreign, %v", len(got.Claims), got.Beyond, got.Noise, got.Foreign, err)
	}
	// What is foreign takes nobody's room.
	var in bytes.Buffer
	for range MaxClaims + 10 {
		fmt.Fprintln(&in, line(map[string]any{"nonce": "OTHER"}))
	}
	fmt.Fprintln(&in, line(nil))
	if got, err = ParseClaims(&in, ours, askedAll); err != nil || len(got.Claims) != 1 || got.Foreign != MaxClaims+10 || got.Beyond != 0 {
		t.Errorf("%d kept, %d beyond, %d foreign, %v", len(got.Claims), got.Beyond, got.Foreign, err)
	}
}

// repeated is the same words for ever, so that a flood costs the test nothing.
type repeated struct{ words string }

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.words)
	r.words = r.words[n:] + r.words[:n]
	return n, nil
}

func TestParseClaimsReaderFails(t *testing.T) {
	fault := errors.New("the disk is gone")
	for _, before := range []string{"", line(nil) + "\n", strings.Repeat("x", 2*MaxClaimBytes)} {
		_, err := ParseClaims(io.MultiReader(strings.NewReader(before), iotest.ErrReader(fault)), ours, askedAll)
		if !errors.Is(err, fault) {
			t.Errorf("after %d bytes: %v", len(before), err)
		}
	}
}

func TestClaimsOf(t *testing.T) {
	a, b := Claim{Attempt: "disk", Route: "tmp", Count: 1}, Claim{Attempt: "disk", Route: "root"}
	c, d := Claim{Attempt: "outside", Route: "tmp"}, Claim{Attempt: "disk", Route: "tmp", Count: 2}
	got := Claims{Claims: []Claim{a, b, c, d}}.Of("disk", "tmp")
	if len(got) != 2 || got[0] != a || got[1] != d {
		t.Errorf("%+v", got)
	}
	if got := (Claims{Claims: []Claim{a}}).Of("disk", "root"); got != nil {
		t.Errorf("%+v", got)
	}
}

func FuzzParseClaims(f *testing.F) {
	for _, s := range []string{
		"", line(nil), line(bare("reached")) + "\n" + line(nil) + "\n", line(map[string]any{"nonce": "OTHER"}), "\x1b[2J\x00\n{}",
		line(map[string]any{"kind": "EWHATEVER"}), `{"nonce":"OTHER","nonce":"NONCE"}`, strings.Repeat("{", 5000) + "\n" + line(nil),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := ParseClaims(bytes.NewReader(in), ours, askedShadow)
		if err != nil {
			t.Fatalf("the reader did not fail: %v", err)
		}
		if lines := bytes.Count(in, []byte("\n")) + 1; len(got.Claims)+got.Foreign+got.Noise+got.Beyond > lines {
			t.Errorf("more was counted than the %d lines: %+v", lines, got)
		}
		if len(got.Claims) > MaxClaims || len(got.Claims) < MaxClaims && got.Beyond > 0 {
			t.Errorf("%d kept, %d beyond", len(got.Claims), got.Beyond)
		}
		for _, c := range got.Claims {
			if c.Nonce != ours || !askedShadow(c.Attempt, c.Route) {
				t.Errorf("not ours: %+v", c)
			}
			if len(c.Note) > MaxNote || len(c.Call) > MaxNote {
				t.Errorf("unbounded: %+v", c)
			}
			switch c.Event {
			case Stopped:
				if !knownKind(c.Kind) || !knownPlace(c.Place) {
					t.Errorf("unknown words: %+v", c)
				}
			case Reached, Happened, Progress, Failed, Reading:
				if (c.Kind != "") || (c.Place != "") {
					t.Errorf("names a refusal: %+v", c)
				}
			default:
				t.Errorf("unknown event: %+v", c)
			}
		}
		// Whatever else is in the stream, nothing of another run is kept.
		other, err := ParseClaims(bytes.NewReader(in), rand.Text(), askedAll)
		if err != nil || len(other.Claims) != 0 {
			t.Errorf("kept of another run: %+v, %v", other, err)
		}
	})
}
