package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tenwalls.dev/harness/hostile"
)

var monday = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// ledger is one in a folder of the test's own that is not there yet.
func ledger(t *testing.T) *History {
	t.Helper()
	return In(filepath.Join(t.TempDir(), "state"))
}

func begun(n int) Entry {
	return Entry{Run: fmt.Sprintf("run_%02d", n), Reason: "schedule", Started: monday.Add(time.Duration(n) * time.Hour)}
}

func finished(n int, o hostile.Outcome) Entry {
	e := begun(n)
	e.Finished, e.Outcome, e.Complete = e.Started.Add(12*time.Second), o, true
	e.Trials = map[hostile.Verdict]int{hostile.Held: 106, hostile.Fell: 1}
	e.Fell = []string{"step-05/processor/relay"}
	e.Digests = Digests{Runtime: "sha256:1", Config: "sha256:2", Image: "empty", Harness: "sha256:3", Kernel: "6.18.2", Report: "sha256:4"}
	e.Expires, e.Folder = e.Started.Add(24*time.Hour), "/var/lib/out"
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// told is each run with its outcome, in order.
func told(t *testing.T, h *History) []string {
	t.Helper()
	entries, _, err := h.Entries(time.Time{})
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Run+" "+string(e.Outcome))
	}
	return out
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestNoLedgerIsEmpty(t *testing.T) {
	h := ledger(t)
	entries, damage, err := h.Entries(time.Time{})
	if len(entries)+len(damage) != 0 || err != nil {
		t.Errorf("%v, %v, %v", entries, damage, err)
	}
	if e, ok, err := h.LastGood(); ok || err != nil {
		t.Errorf("%v, %v, %v", e, ok, err)
	}
	if _, err := os.Stat(filepath.Dir(h.Path())); !os.IsNotExist(err) {
		t.Errorf("reading made something: %v", err)
	}
}

func TestARunIsBegunAndFinished(t *testing.T) {
	h := ledger(t)
	must(t, h.Begin(begun(1)))
	same(t, told(t, h), []string{"run_01 running"})
	want := finished(1, hostile.Refused)
	must(t, h.Finish(want))
	entries, damage, err := h.Entries(time.Time{})
	must(t, err)
	if len(entries) != 1 || len(damage) != 0 {
		t.Fatalf("%v, %v", entries, damage)
	}
	if entries[0].By.PID != os.Getpid() {
		t.Errorf("made by %+v", entries[0].By)
	}
	entries[0].By = Process{}
	same(t, entries[0], want)
}

func TestRunsSince(t *testing.T) {
	h := ledger(t)
	for n := range 3 {
		must(t, h.Begin(begun(n)))
		must(t, h.Finish(finished(n, hostile.Qualified)))
	}
	entries, _, err := h.Entries(begun(1).Started)
	must(t, err)
	if len(entries) != 2 || entries[0].Run != "run_01" {
		t.Errorf("%+v", entries)
	}
}

func TestLastGoodIsCompleteAndQualified(t *testing.T) {
	h := ledger(t)
	must(t, h.Finish(finished(1, hostile.Qualified)))
	must(t, h.Finish(finished(2, hostile.Qualified)))
	selection := finished(3, hostile.Qualified)
	selection.Complete = false
	must(t, h.Finish(selection))
	must(t, h.Finish(finished(4, hostile.Unproven)))
	must(t, h.Finish(finished(5, Interrupted)))
	e, ok, err := h.LastGood()
	must(t, err)
	if !ok || e.Run != "run_02" {
		t.Errorf("last good is %+v, %v", e, ok)
	}
}

// A line of the beginning that was lost takes nothing of the run away.
func TestAFinishedLineStandsAlone(t *testing.T) {
	h := ledger(t)
	must(t, h.Finish(finished(1, hostile.Qualified)))
	same(t, told(t, h), []string{"run_01 qualified"})
}

func TestRunsMayOverlap(t *testing.T) {
	h := ledger(t)
	must(t, h.Begin(begun(1)))
	must(t, h.Begin(begun(2)))
	must(t, h.Finish(finished(2, hostile.Unproven)))
	must(t, h.Finish(finished(1, hostile.Qualified)))
	same(t, told(t, h), []string{"run_01 qualified", "run_02 unproven"})
}

// Cut at every byte, the ledger tells each line that is whole, and the next run
// is added to it and told as well.
func TestTruncatedAtEveryByte(t *testing.T) {
	h := ledger(t)
	must(t, h.Finish(finished(1, hostile.Qualified)))
	must(t, h.Finish(finished(2, hostile.Refused)))
	must(t, h.Finish(finished(3, hostile.Unproven)))
	whole, err := os.ReadFile(h.Path())
	must(t, err)
	names := []string{"run_01 qualified", "run_02 refused", "run_03 unproven"}
	for n := range len(whole) + 1 {
		must(t, os.WriteFile(h.Path(), whole[:n], 0o600))
		lines := bytes.Count(whole[:n], []byte("\n"))
		torn := n > 0 && whole[n-1] != '\n'
		if torn && n < len(whole) && whole[n] == '\n' { // only the line break is missing
			lines, torn = lines+1, false
		}
		want := slices.Clone(names[:lines])
		_, damage, err := h.Entries(time.Time{})
		must(t, err)
		if got := told(t, h); !slices.Equal(got, want) || (len(damage) == 1) != torn || len(damage) > 1 {
			t.Fatalf("cut at %d: told %q, damage %q, want %q", n, got, damage, want)
		}
		must(t, h.Finish(finished(4, hostile.Qualified)))
		if got := told(t, h); !slices.Equal(got, append(want, "run_04 qualified")) {
			t.Fatalf("cut at %d and added: told %q", n, got)
		}
		_, damage, err = h.Entries(time.Time{})
		must(t, err)
		if torn != (len(damage) == 1) || torn && !strings.Contains(damage[0], fmt.Sprintf("line %d: t", lines+1)) {
			t.Fatalf("cut at %d and added: damage %q", n, damage)
		}
	}
}

// Any one bit of a line that is turned is seen, and the lines beside it stand.
func TestAlteredAtEveryByte(t *testing.T) {
	h := ledger(t)
	must(t, h.Finish(finished(1, hostile.Qualified)))
	first, err := os.ReadFile(h.Path())
	must(t, err)
	must(t, h.Finish(finished(2, hostile.Refused)))
	both, err := os.ReadFile(h.Path())
	must(t, err)
	must(t, h.Finish(finished(3, hostile.Unproven)))
	whole, err := os.ReadFile(h.Path())
	must(t, err)
	want := []string{"run_01 qualified", "run_03 unproven"}
	for n := len(first); n < len(both)-1; n++ {
		altered := slices.Clone(whole)
		altered[n] ^= 1
		must(t, os.WriteFile(h.Path(), altered, 0o600))
		_, damage, err := h.Entries(time.Time{})
		must(t, err)
		if got := told(t, h); !slices.Equal(got, want) || len(damage) == 0 {
			t.Fatalf("byte %d: told %q, damage %q", n, got, damage)
		}
	}
}

func TestWhatIsNoLedger(t *testing.T) {
	h := ledger(t)
	must(t, h.Finish(finished(1, hostile.Qualified)))
	good, err := os.ReadFile(h.Path())
	must(t, err)
	zeros := make([]byte, 3*maxLine) // what a power cut may leave of the last blocks
	for name, around := range map[string][2]string{
		"zeros behind": {"", string(zeros)},
		"zeros before": {string(zeros) + "\n", ""},
		"binary":       {"\x00\xff\x1b[2J\n", "\xff\xfe\n"},
		"empty lines":  {"\n\n\n", "\n\n"},
		"words":        {"# a note of mine\n", "{}\nnull\n"},
	} {
		must(t, os.WriteFile(h.Path(), []byte(around[0]+string(good)+around[1]), 0o600))
		_, damage, err := h.Entries(time.Time{})
		must(t, err)
		if got := told(t, h); !slices.Equal(got, []string{"run_01 qualified"}) || len(damage) == 0 {
			t.Errorf("%s: told %q, damage %q", name, got, damage)
		}
		for _, d := range damage {
			if strings.ContainsAny(d, "\x1b\x00") || !utf8.ValidString(d) {
				t.Errorf("%s: %q is no plain text", name, d)
			}
		}
	}
	must(t, os.WriteFile(h.Path(), []byte(strings.Repeat("?\n", 500)), 0o600))
	if _, damage, err := h.Entries(time.Time{}); err != nil || len(damage) != maxDamage+1 {
		t.Errorf("%d damaged lines told, %v", len(damage), err)
	}
}

func TestWhatIsNoEntry(t *testing.T) {
	h := ledger(t)
	if err := h.Begin(Entry{Reason: "start", Started: monday}); err == nil {
		t.Error("a run without an id was begun")
	}
	if err := h.Begin(Entry{Run: "run_1"}); err == nil {
		t.Error("a run without a time was begun")
	}
	for _, o := range []hostile.Outcome{"", Running, "good"} {
		if err := h.Finish(finished(1, o)); err == nil {
			t.Errorf("a run finished with %q", o)
		}
	}
	if _, err := os.Stat(h.Path()); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}

// However much a caller hands over, a line is bounded and told.
func TestALineIsBounded(t *testing.T) {
	h := ledger(t)
	e := finished(1, hostile.Refused)
	e.Reason, e.Why, e.Folder = strings.Repeat("\xff\x1b\"", 9999), strings.Repeat("é\x1b", 9999), strings.Repeat("\x1b", 1<<20)
	e.Fell = slices.Repeat([]string{strings.Repeat("<", 500)}, 500)
	e.Misnamed = e.Fell
	must(t, h.Finish(e))
	entries, damage, err := h.Entries(time.Time{})
	must(t, err)
	if n := len(entries); n != 1 || len(damage) != 0 || len(entries[0].Fell) != maxIDs || len(entries[0].Why) > maxWhy {
		t.Errorf("%d entries, damage %q", n, damage)
	}
}

func TestKind(t *testing.T) {
	for reason, want := range map[string]string{
		"start": "start", "change: runsc digest": "change", "": "other", "changes": "other", "deploy: v1.2": "deploy", "hand": "hand", "\x1b": "other",
	} {
		if got := (Entry{Reason: reason}).Kind(); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
}

// What a run takes in the ledger is stated in the documentation.
func TestGrowth(t *testing.T) {
	h := ledger(t)
	e := finished(1, hostile.Qualified)
	digest := "sha256:" + strings.Repeat("0", 64)
	e.Run, e.Fell, e.BootID, e.Version = "run_01m8qr12rzejg9zbktszj7z80q", nil, strings.Repeat("0", 36), "v1.0.0-12-gabcdef0"
	e.Digests = Digests{digest, digest, "empty", digest, "6.18.2-cloud-amd64", digest}
	e.Folder = "/var/lib/tenwalls/runs/" + e.Run
	b := e
	b.Outcome = ""
	must(t, h.Begin(b))
	must(t, h.Finish(e))
	st, err := os.Stat(h.Path())
	must(t, err)
	t.Logf("%d bytes a qualified run", st.Size())
	if st.Size() > 1200 {
		t.Errorf("%d bytes a run, more than the documentation says", st.Size())
	}
}
