//go:build privileged

package observers

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the privileged tests need root")
	}
}

// probe is a real sandbox that runs testdata/probe.
type probe struct {
	cgroup string
	image  string // root file system
	inputs string // mounted read-only on /inputs
	lines  []string
	stop   func() // ends the guest and waits for it
}

// probeSetup is what a test changes about the sandbox before it starts.
type probeSetup struct {
	steps    []string
	prepare  func(image, inputs string) // places files
	extra    map[string]string          // further bind mounts, destination to host folder
	writable bool                       // the root file system
	flags    []string                   // of runsc
	started  func(*probe)               // called before the runtime is started
}

func startProbe(t *testing.T, setup probeSetup) *probe {
	t.Helper()
	needRoot(t)
	binary := os.Getenv("TENWALLS_RUNSC")
	if binary == "" {
		binary = "../bin/runsc"
	}
	binary, err := filepath.Abs(binary)
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		t.Fatalf("no runsc (set TENWALLS_RUNSC): %v", err)
	}
	bundle := t.TempDir()
	p := &probe{cgroup: "/tenwalls-test-" + filepath.Base(filepath.Dir(bundle)) + filepath.Base(bundle), image: filepath.Join(bundle, "rootfs"), inputs: t.TempDir()}
	for _, folder := range []string{"proc", "dev", "tmp", "inputs", "scratch", "etc"} {
		must(t, os.MkdirAll(filepath.Join(p.image, folder), 0o755))
	}
	for destination := range setup.extra {
		must(t, os.MkdirAll(filepath.Join(p.image, destination), 0o755))
	}
	placeProbe(t, filepath.Join(p.image, "probe"))
	if setup.prepare != nil {
		setup.prepare(p.image, p.inputs)
	}
	writeSpec(t, bundle, p, setup)
	p.start(t, binary, bundle, setup)
	return p
}

// placeProbe puts the probe at the path, from TENWALLS_PROBE where there is no
// compiler.
func placeProbe(t *testing.T, at string) {
	t.Helper()
	if built := os.Getenv("TENWALLS_PROBE"); built != "" {
		data, err := os.ReadFile(built)
		must(t, err)
		must(t, os.WriteFile(at, data, 0o755))
		return
	}
	build := exec.Command("go", "build", "-o", at, "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v\n%s", err, out)
	}
}

func writeSpec(t *testing.T, bundle string, p *probe, setup probeSetup) {
	type object = map[string]any
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
		{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": []string{"ro"}},
		{"destination": "/inputs", "type": "bind", "source": p.inputs, "options": []string{"ro", "rbind"}},
	}
	for destination, source := range setup.extra {
		mounts = append(mounts, object{"destination": destination, "type": "bind", "source": source, "options": []string{"rw", "rbind"}})
	}
	namespaces := []object{}
	for _, kind := range []string{"pid", "mount", "network", "ipc", "uts"} {
		namespaces = append(namespaces, object{"type": kind})
	}
	spec, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": 65534, "gid": 65534}, "cwd": "/", "noNewPrivileges": true,
			"args": append([]string{"/probe"}, setup.steps...), "env": []string{"PATH=/"}, "capabilities": object{},
		},
		"root":     object{"path": "rootfs", "readonly": !setup.writable},
		"hostname": "probe", "mounts": mounts, "linux": object{"namespaces": namespaces},
	})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(bundle, "config.json"), spec, 0o600))
}

func (p *probe) start(t *testing.T, binary, bundle string, setup probeSetup) {
	groups := makeTestCgroup(t, p.cgroup)
	state := t.TempDir()
	t.Cleanup(func() { // the runtime keeps its empty network namespace mounted there
		if err := unix.Unmount(filepath.Join(state, "null-netns"), unix.MNT_DETACH); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			t.Error(err)
		}
	})
	// The shell joins the cgroup and becomes runsc, so all of it is born there.
	script := `runsc=$1 state=$2 bundle=$3; shift 3; n=$1; shift
while [ "$n" -gt 0 ]; do echo $$ >"$1/cgroup.procs" || exit 97; shift; n=$((n-1)); done
exec "$runsc" --root "$state" --network=none --ignore-cgroups "$@" run --bundle "$bundle" probe`
	args := append([]string{"-c", script, "sh", binary, state, bundle, string(rune('0' + len(groups)))}, groups...)
	command := exec.Command("sh", append(args, setup.flags...)...)
	stdin, err := command.StdinPipe()
	must(t, err)
	stdout, err := command.StdoutPipe()
	must(t, err)
	var stderr strings.Builder
	command.Stderr = &stderr
	if setup.started != nil {
		setup.started(p)
	}
	must(t, command.Start())
	stopped := false
	p.stop = func() {
		if !stopped {
			stopped = true
			must(t, stdin.Close())
			_, _ = io.Copy(io.Discard, stdout)
			_ = command.Wait() // the state says nothing here: the test looks at the host
		}
	}
	t.Cleanup(func() {
		killTestCgroup(t, p.cgroup)
		p.stop()
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "done" {
		p.lines = append(p.lines, lines.Text())
	}
	if lines.Text() != "done" {
		t.Fatalf("the probe did not get through its steps: %q, stderr %q", p.lines, stderr.String())
	}
}

// makeTestCgroup makes a cgroup in the pids and memory controllers (v1) or in
// the one hierarchy (v2), removed at the end of the test.
func makeTestCgroup(t *testing.T, cgroup string) (folders []string) {
	roots := []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory"}
	var st unix.Statfs_t
	must(t, unix.Statfs("/sys/fs/cgroup", &st))
	if int64(st.Type) == unix.CGROUP2_SUPER_MAGIC {
		roots = []string{"/sys/fs/cgroup"}
	}
	for _, root := range roots {
		folder := root + cgroup
		must(t, os.Mkdir(folder, 0o755))
		folders = append(folders, folder)
		t.Cleanup(func() { must(t, eventually(func() error { return unix.Rmdir(folder) })) })
	}
	return folders
}

func killTestCgroup(t *testing.T, cgroup string) {
	must(t, eventually(func() error {
		pids, err := jobPIDs(Local(), cgroup)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && len(pids) == 0) {
			return nil
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // ESRCH: it ended meanwhile
		}
		return errors.Join(err, errors.New("processes are left in the cgroup"))
	}))
}

func eventually(try func() error) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
