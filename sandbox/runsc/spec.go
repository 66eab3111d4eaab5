package runsc

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"tenwalls.dev/harness/sandbox"
)

// hostname is what a job sees; it tells nothing about the host.
const hostname = "sandbox"

// spec returns the OCI runtime configuration of one job (OCI runtime spec,
// config.md and config-linux.md). Every path of the host in it is absolute:
// runsc fails on relative ones.
func (w Walls) spec(job sandbox.Job, rootfs string, dirs jobDirs) *specs.Spec {
	return &specs.Spec{
		Version:  "1.0.2",
		Hostname: hostname,
		Root:     &specs.Root{Path: rootfs, Readonly: !w.RootWritable},
		Process: &specs.Process{
			User:            specs.User{UID: w.UID, GID: w.GID, AdditionalGids: w.Groups},
			Args:            job.Argv,
			Env:             environ(job.Env),
			Cwd:             sandbox.ScratchPath,
			NoNewPrivileges: !w.NewPrivileges,
			Capabilities: &specs.LinuxCapabilities{
				Bounding: w.Capabilities, Effective: w.Capabilities, Inheritable: w.Capabilities,
				Permitted: w.Capabilities, Ambient: w.Capabilities,
			},
			Rlimits: w.rlimits(),
		},
		Mounts: w.mounts(len(job.Inputs) > 0, dirs),
		Linux:  w.linux(),
	}
}

// environ holds exactly what the job declared, in a fixed order.
func environ(env map[string]string) []string {
	out := []string{}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

// rlimits are enforced by the guest's kernel (setrlimit(2)). Soft equals hard,
// so the processor limit kills at once instead of sending SIGXCPU first.
func (w Walls) rlimits() []specs.POSIXRlimit {
	out := []specs.POSIXRlimit{{Type: "RLIMIT_CORE"}}
	if w.Processes > 0 {
		n := uint64(w.Processes)
		out = append(out, specs.POSIXRlimit{Type: "RLIMIT_NPROC", Soft: n, Hard: n})
	}
	if w.CPULimit > 0 {
		s := uint64((w.CPULimit + time.Second - 1) / time.Second)
		out = append(out, specs.POSIXRlimit{Type: "RLIMIT_CPU", Soft: s, Hard: s})
	}
	return out
}

func (w Walls) mounts(inputs bool, dirs jobDirs) []specs.Mount {
	mode := func(writable bool) string {
		if writable {
			return "rw"
		}
		return "ro"
	}
	out := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		// Read-only would refuse to open even /dev/null for writing, which
		// breaks most programs: ownership refuses here.
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=0755", "size=64k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"ro", "nosuid", "noexec"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "tmpfs", Options: []string{"ro", "nosuid", "nodev", "noexec", "size=64k"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"ro", "nosuid", "noexec", "nodev"}},
	}
	if !w.TmpOpen {
		// Left out, runsc mounts a writable, unsized tmpfs of its own.
		out = append(out, specs.Mount{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"ro", "nosuid", "nodev", "noexec", "size=64k"}})
	}
	bind := func(source, target string, writable bool) {
		out = append(out, specs.Mount{
			Destination: target, Type: "bind", Source: source,
			Options: []string{"bind", mode(writable), "nosuid", "nodev"},
		})
	}
	bind(dirs.scratch, sandbox.ScratchPath, true)
	if inputs {
		bind(dirs.inputs, sandbox.InputsPath, w.InputsWritable)
	}
	for _, m := range w.Mounts {
		bind(m.Source, m.Target, m.Writable)
	}
	return out
}

func (w Walls) linux() *specs.Linux {
	out := &specs.Linux{}
	for _, n := range w.Namespaces {
		ns := specs.LinuxNamespace{Type: specs.LinuxNamespaceType(n), Path: w.Shared[n]}
		if n == string(specs.NetworkNamespace) {
			ns.Path = w.NetNS
		}
		out.Namespaces = append(out.Namespaces, ns)
	}
	if w.Filter != nil {
		out.Seccomp = w.Filter.spec()
	}
	return out
}

// jobDirs are the folders of one job below the runner's state folder. All of
// them go when the job ends.
type jobDirs struct {
	base    string // holds the others
	bundle  string // config.json
	scratch string // mount point of the sized tmpfs
	inputs  string // copies of the inputs, root's
	logs    string // the runtime's debug logs
	root    string // runsc's own state (--root), of this one container
}

func dirsAt(base string) jobDirs {
	at := func(name string) string { return filepath.Join(base, name) }
	return jobDirs{base: base, bundle: at("bundle"), scratch: at("scratch"), inputs: at("inputs"), logs: at("logs"), root: at("root")}
}

func (d jobDirs) make() error {
	for _, dir := range []string{d.base, d.bundle, d.scratch, d.inputs, d.logs, d.root} {
		if err := os.Mkdir(dir, 0o711); err != nil {
			return fmt.Errorf("make job folder: %w", err)
		}
	}
	// What is mounted in the job shows its mode there.
	if err := os.Chmod(d.inputs, 0o755); err != nil {
		return fmt.Errorf("make job folder: %w", err)
	}
	return nil
}

// errorLog is where runsc, its gofer and its sandbox write what failed, as
// lines of JSON. The guest cannot reach it.
func (d jobDirs) errorLog() string { return filepath.Join(d.logs, "runsc.json") }

func writeBundle(dir string, s *specs.Spec) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
