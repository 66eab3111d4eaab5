package reports

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"tenwalls.dev/harness/hostile"
)

func mustEncode(t testing.TB, r *Report) []byte {
	t.Helper()
	data, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEncodeIsGolden(t *testing.T) {
	golden(t, "report.json", mustEncode(t, exampleReport()))
}

func TestEncodeDecodeKeepsTheReport(t *testing.T) {
	first := mustEncode(t, exampleReport())
	r, err := Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	if second := mustEncode(t, r); !bytes.Equal(first, second) {
		t.Error("encoding again gives other bytes")
	}
	want := exampleReport()
	for i := range want.Trials {
		c := want.Trials[i].Claim
		if c != nil { // what is no UTF-8 cannot stand in JSON
			c.Note, c.Call = strings.ToValidUTF8(c.Note, "\ufffd\ufffd"), strings.ToValidUTF8(c.Call, "\ufffd\ufffd")
		}
	}
	if diff := cmp.Diff(want.Trials[10].Claim, r.Trials[10].Claim); diff != "" {
		t.Error("hostile claim (-want +got):\n" + diff)
	}
	if diff := cmp.Diff(whole(want).Trials[7], r.Trials[7]); diff != "" {
		t.Error("trial (-want +got):\n" + diff)
	}
}

func TestEncodeLeavesItsInputAlone(t *testing.T) {
	r := exampleReport()
	r.Trials[0].Started = r.Trials[0].Started.In(time.FixedZone("here", 3600))
	before := *r
	before.Trials = append([]Trial(nil), r.Trials...)
	data := mustEncode(t, r)
	if !reflect.DeepEqual(before, *r) {
		t.Error("the report was changed")
	}
	if !bytes.Contains(data, []byte(`"started": "2026-03-04T05:06:07Z"`)) {
		t.Error("time is not in UTC")
	}
}

func TestEncodeWritesNoNullForAListOrMap(t *testing.T) {
	r := &Report{Schema: Schema, Run: "run_1", Outcome: hostile.Unproven}
	data := mustEncode(t, r)
	if bytes.Contains(data, []byte("null")) {
		t.Errorf("null in\n%s", data)
	}
	if _, err := Decode(data); err != nil {
		t.Error(err)
	}
}

func TestEncodedReportIsHarmlessOnATerminal(t *testing.T) {
	for _, r := range string(mustEncode(t, exampleReport())) {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("holds %q", r)
		}
	}
}

func TestEncodeRefusesWhatDecodeWouldRefuse(t *testing.T) {
	r := exampleReport()
	r.Trials[3].Verdict = "fine"
	if _, err := Encode(r); err == nil || !strings.Contains(err.Error(), "trials/3/verdict") {
		t.Errorf("err = %v", err)
	}
}

func TestDecodeNamesTheField(t *testing.T) {
	good := mustEncode(t, exampleReport())
	edit := func(change func(m map[string]any)) []byte {
		var m map[string]any
		dec := json.NewDecoder(bytes.NewReader(good))
		dec.UseNumber()
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		change(m)
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	trial := func(m map[string]any, i int) map[string]any { return m["trials"].([]any)[i].(map[string]any) }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":            {nil, "EOF"},
		"truncated":          {good[:len(good)/2], "unexpected EOF"},
		"trailing":           {append(bytes.Clone(good), '1'), "after top-level value"},
		"a list":             {[]byte("[]"), "report: got array, want object"},
		"too large":          {make([]byte, MaxReport+1), "more than"},
		"other schema":       {edit(func(m map[string]any) { m["schema"] = "https://tenwalls.dev/schema/report/v2" }), "schema: "},
		"unknown field":      {edit(func(m map[string]any) { m["note"] = 1 }), "'note'"},
		"field in capitals":  {edit(func(m map[string]any) { m["Outcome"] = "qualified" }), "'Outcome'"},
		"field missing":      {edit(func(m map[string]any) { delete(trial(m, 2), "controls") }), "trials/2: missing property 'controls'"},
		"unknown kind":       {edit(func(m map[string]any) { trial(m, 1)["expected"].(map[string]any)["kind"] = "EFOO" }), "trials/1/expected/kind: value must be one of"},
		"claim of no words":  {edit(func(m map[string]any) { trial(m, 0)["claim"].(map[string]any)["event"] = "won" }), "trials/0/claim/event"},
		"half a refusal":     {edit(func(m map[string]any) { trial(m, 7)["ended"].(map[string]any)["refusal"].(map[string]any)["kind"] = "" }), "trials/7/ended/refusal"},
		"beyond 2^53-1":      {edit(func(m map[string]any) { m["duration_ms"] = json.Number("9007199254740992") }), "duration_ms"},
		"no whole number":    {edit(func(m map[string]any) { m["duration_ms"] = 1.5 }), "duration_ms"},
		"digest":             {edit(func(m map[string]any) { m["config_digest"] = "sha256:00" }), "config_digest"},
		"time":               {edit(func(m map[string]any) { m["started"] = "yesterday" }), "started"},
		"null for a list":    {edit(func(m map[string]any) { m["trials"] = nil }), "trials: got null, want array"},
		"duplicate id":       {edit(func(m map[string]any) { trial(m, 4)["id"] = trial(m, 2)["id"] }), "trials/4/id"},
		"duplicate field":    {bytes.Replace(good, []byte(`"complete": true`), []byte(`"complete": true, "complete": true`), 1), "uplicate"},
		"escape in the path": {edit(func(m map[string]any) { m["limits"].(map[string]any)["\x1b[2J"] = "x" }), `limits/\x1b[2J`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("err = %v, want one with %q", err, c.want)
			}
			for _, r := range err.Error() {
				if r != '\n' && !harmlessRune(r) {
					t.Errorf("the error holds %q", r)
				}
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), ReportFile)
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, mustEncode(t, exampleReport()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Run != exampleReport().Run {
		t.Errorf("run = %s", r.Run)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("bad file: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(mustEncode(f, exampleReport()))
	f.Add([]byte(`{"trials":[{"id":1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			return
		}
		if _, err := Encode(r); err != nil {
			t.Errorf("what was decoded does not encode: %v", err)
		}
	})
}
