package runsc

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"tenwalls.dev/harness/sandbox"
)

var update = flag.Bool("update", false, "write the golden files again")

func specJob() sandbox.Job {
	return sandbox.Job{Argv: []string{"/bin/grade", "-v"}, Env: map[string]string{"LANG": "C", "A": "1=2"}, Inputs: []sandbox.Input{{Path: "a"}}}
}

func specOf(change func(*Walls)) *specs.Spec {
	w := DefaultConfig().Walls()
	if change != nil {
		change(&w)
	}
	s := w.spec(specJob(), "/images/root", dirsAt("/state/jobs/j"))
	if s.Linux.Seccomp != nil { // the golden file is of every architecture
		s.Linux.Seccomp.Architectures = nil
	}
	return s
}

func TestDenyAllBundle(t *testing.T) {
	got, err := json.MarshalIndent(specOf(nil), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", "deny-all.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the bundle of the deny-all walls changed; it is now\n%s\n(go test -update writes it)", got)
	}
}

// What the profile promises, said without the golden file.
func TestDenyAllPromises(t *testing.T) {
	s := specOf(nil)
	c := s.Process.Capabilities
	if c == nil || len(c.Bounding)+len(c.Effective)+len(c.Inheritable)+len(c.Permitted)+len(c.Ambient) != 0 {
		t.Errorf("capabilities %+v", c)
	}
	if !s.Process.NoNewPrivileges || !s.Root.Readonly || s.Process.User.UID == 0 || s.Process.User.GID == 0 || len(s.Process.User.AdditionalGids) > 0 {
		t.Errorf("process %+v, root %+v", s.Process, s.Root)
	}
	if !slices.Equal(s.Process.Env, []string{"A=1=2", "LANG=C"}) {
		t.Errorf("environment %v", s.Process.Env)
	}
	if env := environ(nil); env == nil || len(env) != 0 {
		t.Errorf("environment of a job without one: %v", env)
	}
	for _, m := range s.Mounts {
		if !slices.Contains(m.Options, "nosuid") || (m.Type != "bind" && !slices.Contains(m.Options, "noexec")) {
			t.Errorf("mount %+v", m)
		}
		if m.Type == "bind" && slices.Contains(m.Options, "rw") != (m.Destination == "/scratch") {
			t.Errorf("mount %+v: only scratch is writable", m)
		}
		if m.Type == "bind" && !strings.HasPrefix(m.Source, "/state/jobs/j/") {
			t.Errorf("mount %+v: not the job's own", m)
		}
	}
	for _, n := range s.Linux.Namespaces {
		if n.Path != "" {
			t.Errorf("namespace %+v is somebody's", n)
		}
	}
	if len(s.Linux.Namespaces) != 5 || s.Hooks != nil || len(s.Linux.Devices) > 0 {
		t.Errorf("namespaces %v, hooks %v, devices %v", s.Linux.Namespaces, s.Hooks, s.Linux.Devices)
	}
}

// leaves are the values of the bundle by their path.
func leaves(t *testing.T, s *specs.Spec) map[string]string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, w := range v {
				walk(at+"."+k, w)
			}
		case []any:
			for i, w := range v {
				key := fmt.Sprint(i)
				if m, ok := w.(map[string]any); ok { // items with a name are told by it
					for _, n := range []string{"destination", "type"} {
						if name, ok := m[n].(string); ok {
							key = name
							break
						}
					}
				}
				walk(at+"."+key, w)
			}
		default:
			out[at] = fmt.Sprint(v)
		}
	}
	walk("", tree)
	return out
}

// Each wall that is lowered changes its own part of the bundle and no other.
func TestLoweredWallChangesItsPart(t *testing.T) {
	whole := leaves(t, specOf(nil))
	for _, c := range []struct {
		name   string
		change func(*Walls)
		want   []string // beginnings of the paths that change; none: the bundle stays
	}{
		{"uid", func(w *Walls) { w.UID = 0 }, []string{".process.user.uid"}},
		{"gid", func(w *Walls) { w.GID = 0 }, []string{".process.user.gid"}},
		{"groups", func(w *Walls) { w.Groups = []uint32{0} }, []string{".process.user.additionalGids"}},
		{"capabilities", func(w *Walls) { w.Capabilities = []string{"CAP_CHOWN"} }, []string{".process.capabilities"}},
		{"new privileges", func(w *Walls) { w.NewPrivileges = true }, []string{".process.noNewPrivileges"}},
		{"root", func(w *Walls) { w.RootWritable = true }, []string{".root.readonly"}},
		{"inputs", func(w *Walls) { w.InputsWritable = true }, []string{".mounts./inputs.options"}},
		{"tmp", func(w *Walls) { w.TmpOpen = true }, []string{".mounts./tmp"}},
		{"filter", func(w *Walls) { w.Filter = nil }, []string{".linux.seccomp"}},
		{"filter action", func(w *Walls) { w.Filter = DenyAllFilter("KILL").With() }, []string{".linux.seccomp.defaultAction"}},
		{"processes", func(w *Walls) { w.Processes = 0 }, []string{".process.rlimits.RLIMIT_NPROC"}},
		{"processor limit", func(w *Walls) { w.CPULimit = 0 }, []string{".process.rlimits.RLIMIT_CPU"}},
		{"namespaces", func(w *Walls) { w.Namespaces = namespaces[:4] }, []string{".linux.namespaces.uts"}},
		{"network namespace", func(w *Walls) { w.NetNS = "/run/netns/x" }, []string{".linux.namespaces.network.path"}},
		{"mount", func(w *Walls) { w.Mounts = []Mount{{Source: "/a", Target: "/b"}} }, []string{".mounts./b"}},
		// Walls of the host, which the bundle does not hold.
		{"host", func(w *Walls) {
			w.CPU, w.Memory, w.Swap, w.HostTasks, w.Wall, w.Output, w.Scratch, w.ScratchFolder = 0, 0, -1, 0, 0, 0, 0, true
			w.Network, w.RootOverlay, w.SetUID = "host", "all:memory", true
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			lowered := leaves(t, specOf(c.change))
			changed := map[string]bool{}
			for at := range whole {
				changed[at] = lowered[at] != whole[at]
			}
			for at, v := range lowered {
				if _, ok := whole[at]; !ok || whole[at] != v {
					changed[at] = true
				}
			}
			maps.DeleteFunc(changed, func(_ string, c bool) bool { return !c })
			if len(changed) == 0 && len(c.want) > 0 {
				t.Error("nothing changed")
			}
			for at := range changed {
				if !slices.ContainsFunc(c.want, func(p string) bool { return at == p || strings.HasPrefix(at, p+".") }) {
					t.Errorf("%s changed from %q to %q", at, whole[at], lowered[at])
				}
			}
		})
	}
}

func TestBundleOfAJobWithoutInputs(t *testing.T) {
	job := specJob()
	job.Inputs = nil
	for _, m := range DefaultConfig().Walls().spec(job, "/r", dirsAt("/d")).Mounts {
		if m.Destination == sandbox.InputsPath {
			t.Errorf("inputs are mounted for a job that has none: %+v", m)
		}
	}
}
