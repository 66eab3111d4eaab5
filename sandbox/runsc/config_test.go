package runsc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wholeConfig names every field once. Its lines are counted by the tests.
const wholeConfig = `version: 1
runtime:
  path: /usr/local/bin/runsc
  platform: systrap
  flags: ["--directfs=false", "--gso"]
image: ""
image_store: /var/lib/tenwalls/images
state_dir: /var/lib/tenwalls/runner
cgroup_parent: /tenwalls
entry_points:
  profile: deny-all
  action: ERRNO
  allow: [socket]
network: none
limits:
  cpu: 2s
  memory: 256MiB
  processes: 32
  scratch: 64MiB
  wall: 10s
  output: 1MiB
  artifacts: 16MiB
  host_tasks: 512
  swap: 0B
`

func TestParseConfigReadsEveryField(t *testing.T) {
	c, err := ParseConfig([]byte(wholeConfig), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Runtime.Flags, want.EntryPoints.Allow, want.file = []string{"--directfs=false", "--gso"}, []string{"socket"}, "f.yaml"
	got, _ := c.Digest()
	wanted, _ := want.Digest()
	if got != wanted || c.File() != "f.yaml" {
		t.Errorf("read %+v, want %+v", c, want)
	}
	changed := strings.NewReplacer("cpu: 2s", "cpu: 3s", "256MiB", "512MiB", ": 32", ": 33").Replace(wholeConfig)
	if c, err = ParseConfig([]byte(changed), "f.yaml"); err != nil {
		t.Fatal(err)
	}
	if l := c.Limits.Limits(); l.CPUMillis != 3000 || l.MemoryBytes != 512<<20 || l.Processes != 33 || l.WallTime != 10*time.Second {
		t.Errorf("limits %+v", l)
	}
}

func TestParseConfigFillsDefaults(t *testing.T) {
	want, err := DefaultConfig().Digest()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "comment": "# nothing\n", "one field": "version: 1\n", "part of a section": "limits:\n  cpu: 2s\n",
		"one separator": "---\nversion: 1\n",
	} {
		c, err := ParseConfig([]byte(text), "f.yaml")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, _ := c.Digest(); got != want {
			t.Errorf("%s: not the defaults: %+v", name, c)
		}
	}
}

// Every value that is refused is named with the file, the line and the field.
func TestParseConfigNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"version: 1", "version: 2", "f.yaml:1: version: "},
		{"/usr/local/bin/runsc", "bin/runsc", "f.yaml:3: runtime.path: "},
		{"/usr/local/bin/runsc", "/usr/../bin/runsc", "f.yaml:3: runtime.path: "},
		{"systrap", "xen", "f.yaml:4: runtime.platform: "},
		{"--gso", "b", "f.yaml:5: runtime.flags[1]: "},
		{"--gso", "--network=host", "f.yaml:5: runtime.flags[1]: --network is set by the runner"},
		{"--gso", "-oci-seccomp=false", "f.yaml:5: runtime.flags[1]: "},
		{`image: ""`, "image: base", "f.yaml:6: image: "},
		{"/var/lib/tenwalls/images", "/", "f.yaml:7: image_store: "},
		{"/var/lib/tenwalls/runner", "runner", "f.yaml:8: state_dir: "},
		{"cgroup_parent: /tenwalls", "cgroup_parent: /../tenwalls", "f.yaml:9: cgroup_parent: "},
		{"cgroup_parent: /tenwalls", "cgroup_parent: /", "f.yaml:9: cgroup_parent: "},
		{"profile: deny-all", "profile: allow-all", "f.yaml:11: entry_points.profile: "},
		{"action: ERRNO", "action: LOG", "f.yaml:12: entry_points.action: "},
		{"network: none", "network: host", "f.yaml:14: network: "},
		{"cpu: 2s", "cpu: 500ms", "f.yaml:16: limits.cpu: "},
		{"cpu: 2s", "cpu: 1500ms", "f.yaml:16: limits.cpu: must be in whole seconds"},
		{"cpu: 2s", "cpu: 25h", "f.yaml:16: limits.cpu: "},
		{"256MiB", "64MiB", "f.yaml:17: limits.memory: "},
		{"processes: 32", "processes: 7", "f.yaml:18: limits.processes: "},
		{"processes: 32", "processes: -1", "f.yaml:18: limits.processes: "},
		{"scratch: 64MiB", "scratch: 512MiB", "f.yaml:19: limits.scratch: "},
		{"scratch: 64MiB", "scratch: 67108863B", "f.yaml:19: limits.scratch: must be in whole pages"},
		{"wall: 10s", "wall: 0s", "f.yaml:20: limits.wall: "},
		{"output: 1MiB", "output: 1KiB", "f.yaml:21: limits.output: "},
		{"output: 1MiB", "output: 1GiB", "f.yaml:21: limits.output: "},
		{"artifacts: 16MiB", "artifacts: 65MiB", "f.yaml:22: limits.artifacts: "},
		{"host_tasks: 512", "host_tasks: 64", "f.yaml:23: limits.host_tasks: "},
		{"swap: 0B", "swap: 1MiB", "f.yaml:24: limits.swap: "},
		// What the parser itself refuses.
		{"network: none", "network: none\nsecrets: all", `f.yaml:15: unknown field "secrets"`},
		{"  cpu: 2s", "  cpu: 2s\n  gpu: 1", `f.yaml:17: unknown field "limits.gpu"`},
		{"processes: 32", "processes: many", "f.yaml:18: limits.processes: a whole number is wanted, not text"},
		{"processes: 32", "processes: 3.5", "f.yaml:18: limits.processes: a whole number is wanted, not a number with a fraction"},
		{"memory: 256MiB", "memory: 256MB", `f.yaml:17: limits.memory: "256MB" is not a size`},
		{"wall: 10s", "wall: ten", `f.yaml:20: limits.wall: "ten" is not a time span`},
		{"runtime:", "runtime: fast\nrest:", "f.yaml:2: runtime: fields are wanted, not text"},
		{"network: none", "network: none\nnetwork: none", "f.yaml:15: "},
		{"swap: 0B\n", "swap: 0B\n---\nversion: 1\n", "f.yaml: more than one YAML document"},
		{"limits:\n", "limits: [\n", "f.yaml:"},
	} {
		text := strings.Replace(wholeConfig, c.from, c.to, 1)
		if text == wholeConfig {
			t.Fatalf("%q is not in the text", c.from)
		}
		_, err := ParseConfig([]byte(text), "f.yaml")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "f.yaml") {
			t.Errorf("%s -> %s: %v, want %q", c.from, c.to, err, c.want)
		}
	}
}

func TestParseConfigNamesEverythingAtOnce(t *testing.T) {
	text := strings.NewReplacer("ERRNO", "LOG", "systrap", "xen", "cpu: 2s", "cpu: 500ms", "256MiB", "2", "32", "[]").Replace(wholeConfig) + "colour: blue\n"
	_, err := ParseConfig([]byte(text), "f.yaml")
	for _, want := range []string{":4: runtime.platform", ":12: entry_points.action", ":16: limits.cpu", ":17: limits.memory: \"2\" is not a size", ":18: limits.processes: a whole number", ":25: unknown field"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestLoadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if _, err := LoadConfig(file); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "config init") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("version: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(file); err == nil || !strings.Contains(err.Error(), file+":1: version") {
		t.Errorf("wrong version: %v", err)
	}
}

func TestDigestIsOfWhatIsInForce(t *testing.T) {
	digest := func(text string) string {
		c, err := ParseConfig([]byte(text), "f.yaml")
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := digest("")
	for name, text := range map[string]string{
		"comment":        "# a comment\nversion: 1 # another\n",
		"order":          "network: none\nversion: 1\n",
		"another unit":   "limits:\n  memory: 262144KiB\n  wall: 10000ms\n",
		"default given":  "limits: {cpu: 2s}\n",
		"empty lists":    "runtime:\n  flags: []\nentry_points:\n  allow: []\n",
		"absent as null": "image:\n",
	} {
		if got := digest(text); got != want {
			t.Errorf("%s changes the digest", name)
		}
	}
	seen := map[string]string{want: "the defaults"}
	for _, text := range []string{
		"runtime: {path: /bin/runsc}", "runtime: {platform: ptrace}", "runtime: {flags: [--gso]}", "image: /a", "image_store: /a",
		"state_dir: /a", "cgroup_parent: /a", "entry_points: {action: KILL}", "entry_points: {allow: [socket]}", "limits: {cpu: 3s}",
		"limits: {memory: 512MiB}", "limits: {processes: 33}", "limits: {scratch: 32MiB}", "limits: {wall: 11s}",
		"limits: {output: 2MiB}", "limits: {artifacts: 1MiB}", "limits: {host_tasks: 513}",
	} {
		d := digest(text)
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", text, other)
		}
		seen[d] = text
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{wholeConfig, "", "---\n---\n", "limits: null", "runtime: null", "a: &a [*a]", "\x00", "version: !!binary x", "? x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConfig(text, "f.yaml")
		if err != nil {
			if !strings.Contains(err.Error(), "f.yaml") || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%q", err)
			}
			return
		}
		if err := c.Check(); err != nil {
			t.Errorf("accepted, and wrong: %v", err)
		}
		if _, err := c.Digest(); err != nil {
			t.Errorf("accepted, and without a digest: %v", err)
		}
	})
}
