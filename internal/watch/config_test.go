package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/sandbox/runsc"
)

func TestTheWrittenDefaultIsTheDefault(t *testing.T) {
	const file = "../../deploy/harness.yaml"
	data, err := os.ReadFile(file)
	must(t, err)
	c, err := ParseConfig(data, "/etc/tenwalls/harness.yaml")
	must(t, err)
	want := DefaultConfig()
	want.file = "/etc/tenwalls/harness.yaml"
	if got, want := printed(c), printed(want); got != want {
		t.Errorf("%s says\n%s\nthe default is\n%s", file, got, want)
	}
	// Each field is there: without a value, or with an unknown one, it is refused.
	for _, field := range []string{"version", "runner", "state_dir", "key", "publish", "publish_life", "valid_for", "run_within", "path", "group", "every", "jitter", "tick", "debounce", "retry", "load", "at_most", "nice", "cpu_percent", "listen", "keep_runs"} {
		if !strings.Contains(string(data), field+": ") {
			t.Errorf("%s does not show %s", file, field)
		}
	}
}

func printed(c Config) string {
	return strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf("%+v", c)), " ", "\n")
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	c, err := ParseConfig([]byte("runner: r.yaml\nstate_dir: ../s\npublish: /p\n"), "/etc/x/h.yaml")
	must(t, err)
	if c.Runner != "/etc/x/r.yaml" || c.StateDir != "/etc/s" || c.Publish != "/p" || c.Key != "" {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsWrongIsToldByLineAndField(t *testing.T) {
	for text, want := range map[string]string{
		"version: 2":     "h.yaml:1: version: is 2",
		"\ncolour: blue": `h.yaml:2: unknown field "colour"`,
		"tick: 0s":       "h.yaml:1: tick: 0s: must be 1s to 1h0m0s: a missed event costs at most a tick",
		"tick: soon":     `h.yaml:1: tick: "soon" is not a time span`,
		"tick: 10":       `h.yaml:1: tick: "10" is not a time span`,
		"tick: [1s]":     "h.yaml:1: tick: one value is wanted, not a list",
		"schedule:\n  cron: ''\n  every: six hours":                            `h.yaml:3: schedule.every: "six hours" is not a time span`,
		"publish_life: 2h":                                                     "publish_life",
		"valid_for: 1s":                                                        "valid_for",
		"debounce: 1h":                                                         "debounce",
		"schedule:\n  every: 1s":                                               "h.yaml:2: schedule.every",
		"schedule:\n  every: 1h\n  jitter: 2h":                                 "h.yaml:3: schedule.jitter",
		"schedule:\n  cron: every day":                                         "h.yaml:2: schedule.cron",
		"schedule:\n  cron: '0 0 31 2 *'":                                      "schedule.cron",
		"schedule:\n  every: 1h\n  cron: '@daily'":                             "has both cron and an interval",
		"share:\n  nice: -5":                                                   "h.yaml:2: share.nice",
		"share:\n  cpu_percent: 5":                                             "share.cpu_percent",
		"metrics:\n  listen: 0.0.0.0:9464":                                     "h.yaml:2: metrics.listen: \"0.0.0.0:9464\" is not a loopback address",
		"metrics:\n  listen: localhost:9464":                                   "is not a loopback address",
		"metrics:\n  listen: unix:relative":                                    "with an absolute path",
		"metrics:\n  listen: 127.0.0.1:metrics":                                "is no port",
		"notify:\n  exec: [mail]":                                              "notify.exec[0]",
		"notify:\n  webhook:\n    url: ftp://h/":                               "notify.webhook.url",
		"notify:\n  webhook:\n    url: https://h":                              "needs secret_file",
		"keep_runs: 0":                                                         "keep_runs",
		"socket:\n  group: no-such-group-here":                                 "h.yaml:2: socket.group",
		"postpone:\n  load: -1":                                                "postpone.load",
		"postpone:\n  load: .nan":                                              "postpone.load: NaN",
		"schedule:\n  cron: '* * * * * *'":                                     "is no cron expression of five fields",
		"runner: /":                                                            "runner",
		"metrics:\n  listen: unix:/":                                           "with an absolute path",
		"publish: /etc/tenwalls/runner.yaml":                                   `h.yaml:1: publish: "/etc/tenwalls/runner.yaml" is also runner: give each a path of its own`,
		"publish: h.yaml":                                                      "is also this file",
		"state_dir: /k\nkey: /k/":                                              "is also state_dir",
		"socket:\n  path: /run/tenwalls/attestation.json":                      "h.yaml:2: socket.path: \"/run/tenwalls/attestation.json\" is also publish",
		"metrics:\n  listen: unix:/run/tenwalls/harness.sock":                  "h.yaml:2: metrics.listen: \"/run/tenwalls/harness.sock\" is also socket.path",
		"notify:\n  webhook: {url: 'https://h', secret_file: /k}\npublish: /k": "is also notify.webhook.secret_file",
		"socket:\n  path: /" + strings.Repeat("s", 107):                        "is longer than a socket's path can be: 107 bytes",
		"version: 1\n---\nversion: 1":                                          "more than one YAML document",
	} {
		_, err := ParseConfig([]byte(text), "h.yaml")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestSchedules(t *testing.T) {
	from := time.Date(2026, 3, 1, 5, 30, 10, 0, time.UTC)
	for _, c := range []struct {
		s      Schedule
		chance float64
		want   time.Time
	}{
		{Schedule{Every: runsc.Duration(time.Hour)}, 0.9, from.Add(time.Hour)},
		{Schedule{Every: runsc.Duration(time.Hour), Jitter: runsc.Duration(10 * time.Minute)}, 0.5, from.Add(65 * time.Minute)},
		{Schedule{Cron: "0 */6 * * *"}, 0.5, time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)},
		{Schedule{Cron: "@daily"}, 0, time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)},
	} {
		if got, err := c.s.Next(from, c.chance); err != nil || !got.Equal(c.want) {
			t.Errorf("%+v: %s, %v, want %s", c.s, got, err, c.want)
		}
	}
	parsed, err := ParseConfig([]byte("schedule:\n  cron: '@hourly'\n"), "h.yaml")
	if err != nil || parsed.Schedule != (Schedule{Cron: "@hourly"}) {
		t.Errorf("%+v, %v", parsed.Schedule, err)
	}
}

// A schedule never stands still and never goes back, across both changes of a
// local clock.
func TestCronAcrossSummerTime(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	for _, start := range []time.Time{time.Date(2026, 3, 28, 12, 0, 0, 0, zone), time.Date(2026, 10, 24, 12, 0, 0, 0, zone)} {
		at := start
		for range 100 {
			next, err := Schedule{Cron: "30 * * * *"}.Next(at, 0)
			must(t, err)
			if d := next.Sub(at); d <= 0 || d > 2*time.Hour {
				t.Errorf("after %s comes %s", at, next)
			}
			at = next
		}
	}
}

func TestPauses(t *testing.T) {
	for n, want := range map[int]time.Duration{1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 5: 15 * time.Minute, 1000: 15 * time.Minute} {
		if got := retryAfter(time.Minute, n, 15*time.Minute); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// What the configuration names for the daemon itself is looked at before it starts.
func TestWhatIsNamedIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/hook", "")
	write(t, dir+"/other", "no attestation")
	write(t, dir+"/secret", "0123456789abcdef")
	must(t, os.Chmod(dir+"/secret", 0o600))
	must(t, os.Chmod(dir+"/other", 0o600))
	must(t, os.Symlink("nowhere", dir+"/link"))
	hook := "notify: {webhook: {url: 'http://h', secret_file: "
	for text, want := range map[string]string{
		"publish: pub\nnotify: {exec: [" + dir + "/hook]}":  "",
		"publish: pub\n" + hook + "secret}}":                "",
		"publish: pub\n" + hook + "hook}}":                  "chmod 600 it",
		"publish: pub\n" + hook + "none}}":                  "notify.webhook.secret_file: open",
		"publish: other":                                    "is there and is no attestation, so it is not removed",
		"publish: link":                                     "a link to nothing",
		"publish: .":                                        "not a regular file",
		"publish: pub\nkey: none":                           "key: ",
		"publish: pub\nkey: other":                          "key: ",
		"publish: pub\nnotify: {exec: [" + dir + "/none]}":  "notify.exec[0]: ",
		"publish: pub\nnotify: {exec: [" + dir + "/other]}": "is no program: chmod +x it",
		"publish: pub\nnotify: {exec: [" + dir + "]}":       "is no program",
	} {
		c, err := ParseConfig([]byte(text), dir+"/h.yaml")
		must(t, err)
		err = c.CheckFiles()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "h.yaml: ")) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Neither configuration is waited for.
func TestANamedPipeIsNoConfiguration(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	if _, err := LoadConfig(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	if _, err := runsc.LoadConfig(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}
