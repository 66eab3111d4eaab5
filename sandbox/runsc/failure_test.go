package runsc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

func TestStartFailureOfRecordedLogs(t *testing.T) {
	for name, want := range map[string]string{
		"missing_source":  "error setting up FS: opening /nonexistent-source: opening /nonexistent-source: open /nonexistent-source: no such file or directory",
		"missing_program": "running container: starting container: starting root container: starting sandbox: creating process: failed to load /bin/none: no such file or directory",
		"consequences":    "running container: creating container: cannot create sandbox: cannot read client sync file: waiting for sandbox to start: EOF",
		"warnings":        "",
		"absent":          "",
	} {
		got, err := startFailure(filepath.Join("testdata", "logs", name+".json"))
		if got != want || err != nil {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
	}
}

// A log is written by processes that are being attacked: nothing in it may do
// more than be quoted.
func TestStartFailureOfHostileLogs(t *testing.T) {
	say := func(words string) string { return fmt.Sprintf(`{"msg":%q,"level":"error"}`+"\n", words) }
	for _, c := range []struct{ name, log, want string }{
		{"empty", "", ""},
		{"noise", "\x00\xff\x80 no log\n", ""},
		{"noise after words", say("the reason") + "\x00\xff{", "the reason"},
		{"cut short", say("the reason") + `{"msg":"ano`, "the reason"},
		{"consequence first", say("cannot read client sync file: EOF") + say("the reason"), "the reason"},
		{"of another form", "[1,2]\n", ""},
		{"wrong types", `{"msg":1,"level":"error"}`, ""},
		{"escapes", `{"msg":"\u001b[2J\u001b]0;title\u0007gone\r\nred","level":"error"}`, "[2J]0;titlegone red"},
		{"hidden text", `{"msg":"a\u202eb\u200bc","level":"error"}`, "abc"},
		{"fatal", `{"msg":"fatal words","level":"fatal"}`, "fatal words"},
		{"huge", say(strings.Repeat("x", 10<<10)), strings.Repeat("x", maxReason) + "..."},
		{"reason beyond the bound", strings.Repeat(`{"msg":"","level":"info"}`+"\n", maxLog/20) + say("too late"), ""},
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := startFailure(file)
		if got != c.want || err != nil {
			t.Errorf("%s: %.80q (%v), want %.80q", c.name, got, err, c.want)
		}
	}
	if _, err := startFailure(t.TempDir() + "/\x00"); err == nil {
		t.Error("a log that cannot be opened is no error")
	}
}

func FuzzShorten(f *testing.F) {
	for _, s := range []string{"", "a b", "\x1b[31m", "é\xff", strings.Repeat("é", maxReason), "\u2028\u202e", strings.Repeat(" a\n", 400)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := shorten(s)
		if len(out) > maxReason+3 || strings.ToValidUTF8(out, "") != out {
			t.Errorf("%q is %d bytes", out, len(out))
		}
		if i := strings.IndexFunc(out, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q is not printable at %d", out, i)
		}
		if shorten(out) != out && len(out) <= maxReason {
			t.Errorf("%q is shortened again to %q", out, shorten(out))
		}
	})
}

func TestLastWords(t *testing.T) {
	for said, want := range map[string]string{
		"": "", "\n\n": "", "one": "one", "first\nlast\n\n": "last", "a\n\x1b[1mb\r\n": "[1mb",
		"flag provided but not defined: -x\nUsage: runsc <flags>\n\n\nUse \"runsc flags\" for a list\n": "flag provided but not defined: -x",
		"first\nwhy\n\nUsage: runsc\n": "why", "Usage: runsc\nlast": "last", "\nUsage: runsc\n": "Usage: runsc",
	} {
		if got := lastWords([]byte(said)); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

func TestKeepLogsForgetsTheOldest(t *testing.T) {
	state := t.TempDir()
	for i := range keptLogs + 3 {
		logs := filepath.Join(t.TempDir(), "logs")
		if err := os.Mkdir(logs, 0o700); err != nil {
			t.Fatal(err)
		}
		to, err := keepLogs(logs, filepath.Join(state, "logs"), fmt.Sprintf("sjob_%03d", i), []byte("words"))
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(to, stderrLog)); err != nil || string(data) != "words" {
			t.Errorf("stderr: %q, %v", data, err)
		}
	}
	left, err := os.ReadDir(filepath.Join(state, "logs"))
	if err != nil || len(left) != keptLogs || left[0].Name() != "sjob_003" {
		t.Errorf("%d kept, the first is %v (%v)", len(left), left[:min(1, len(left))], err)
	}
	if _, err := keepLogs(filepath.Join(state, "absent"), state, "x", nil); err == nil {
		t.Error("logs that are not there are kept")
	}
	// A folder with nothing in it tells nobody anything.
	if to, err := keepLogs(t.TempDir(), filepath.Join(state, "logs"), "sjob_x", nil); to != "" || err != nil {
		t.Errorf("an empty folder is named: %q, %v", to, err)
	}
}
