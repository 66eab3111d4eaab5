package runsc

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tenwalls.dev/harness/internal/bounded"
	"tenwalls.dev/harness/internal/yamlfile"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
)

// Config is the runner configuration: the one file that a production worker
// reads and that the harness is pointed at. Sizes are written as 256MiB, times
// as 10s; unknown fields are refused.
type Config struct {
	Version      int           `yaml:"version"`       // 1
	Runtime      RuntimeConfig `yaml:"runtime"`       //
	Image        string        `yaml:"image"`         // base image of the jobs: an OCI layout or a root file system folder; empty for none
	ImageStore   string        `yaml:"image_store"`   // folder with one root file system a digest: sha256-<hex>
	StateDir     string        `yaml:"state_dir"`     // where the runner keeps jobs, scratch and results; never shared
	CgroupParent string        `yaml:"cgroup_parent"` // below each hierarchy's root, with a leading slash
	EntryPoints  EntryPoints   `yaml:"entry_points"`  //
	Network      string        `yaml:"network"`       // none: the only network profile of schema one
	Limits       LimitsConfig  `yaml:"limits"`        //

	file string
}

// RuntimeConfig says which runsc, and how it is called.
type RuntimeConfig struct {
	Path     string   `yaml:"path"`
	Platform string   `yaml:"platform"` // systrap, ptrace or kvm
	Flags    []string `yaml:"flags"`    // further flags of runsc, before the subcommand
}

// EntryPoints is the entry-point filter.
type EntryPoints struct {
	Profile string   `yaml:"profile"` // deny-all: the allow list of runsc-deny-all-v1
	Action  string   `yaml:"action"`  // ERRNO, TRAP or KILL
	Allow   []string `yaml:"allow"`   // further names; every one of them is a hole, and the census shows it
}

// LimitsConfig is the grant of the host, and two caps of the host beside it.
type LimitsConfig struct {
	CPU       Duration `yaml:"cpu"`
	Memory    Size     `yaml:"memory"`
	Processes int64    `yaml:"processes"`
	Scratch   Size     `yaml:"scratch"`
	Wall      Duration `yaml:"wall"`
	Output    Size     `yaml:"output"`
	Artifacts Size     `yaml:"artifacts"`
	HostTasks int64    `yaml:"host_tasks"` // pids.max of the job's cgroup: the runtime's own threads and stubs
	Swap      Size     `yaml:"swap"`
}

// Limits returns the grant in the contract's form.
func (l LimitsConfig) Limits() sandbox.Limits {
	return sandbox.Limits{
		CPUMillis:     time.Duration(l.CPU).Milliseconds(),
		MemoryBytes:   int64(l.Memory),
		Processes:     l.Processes,
		ScratchBytes:  int64(l.Scratch),
		WallTime:      time.Duration(l.Wall),
		OutputBytes:   int64(l.Output),
		ArtifactBytes: int64(l.Artifacts),
	}
}

// DefaultConfig is the deny-all profile with the seed's numbers.
func DefaultConfig() Config {
	return Config{
		Version:      1,
		Runtime:      RuntimeConfig{Path: "/usr/local/bin/runsc", Platform: "systrap"},
		ImageStore:   "/var/lib/tenwalls/images",
		StateDir:     "/var/lib/tenwalls/runner",
		CgroupParent: "/tenwalls",
		EntryPoints:  EntryPoints{Profile: "deny-all", Action: "ERRNO"},
		Network:      "none",
		Limits: LimitsConfig{
			CPU: Duration(2 * time.Second), Memory: 256 << 20, Processes: 32, Scratch: 64 << 20,
			Wall: Duration(10 * time.Second), Output: 1 << 20, Artifacts: 16 << 20, HostTasks: 512,
		},
	}
}

// File is where the configuration was read from, empty when it was not.
func (c Config) File() string { return c.file }

// maxConfig bounds the file, in bytes.
const maxConfig = 1 << 20

// LoadConfig reads and checks the file. Every error names the file and, where
// there is one, the line and the field.
func LoadConfig(file string) (Config, error) {
	data, err := bounded.Read(file, maxConfig)
	if err != nil {
		return Config{}, fmt.Errorf("runner configuration: %w (harness config init writes one)", err)
	}
	return ParseConfig(data, file)
}

// ParseConfig is LoadConfig over bytes. Fields that are not given keep the
// values of [DefaultConfig]. file is used in messages alone: a relative path in
// the configuration is refused, not read from where the file or the program is.
func ParseConfig(data []byte, file string) (Config, error) {
	c := DefaultConfig()
	err := yamlfile.Decode(data, &c, shorten)
	c.file = file
	if err := errors.Join(err, c.Check()); err != nil {
		return Config{}, yamlfile.Locate(err, data, "runner configuration", file)
	}
	return c, nil
}

var cgroupPath = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._-]*)+$`)

// ownFlags are runsc's flags that the runner itself sets.
var ownFlags = []string{"root", "network", "platform", "ignore-cgroups", "oci-seccomp", "debug-log", "log", "log-format", "rootless", "host-uds", "overlay2", "allow-suid"}

// safeFlags are the further flags of runsc that lower no wall: how fast it is,
// how it keeps files in memory, how it watches itself. Every other one is refused:
// runsc has flags that open the host's sockets, pipes and devices to a job, let a
// bundle set flags, or leave the host's network to it, more with each release, and
// no trial shows what each of them opens.
var safeFlags = []string{
	"buffer-pooling", "cpu-num-from-quota", "dcache", "directfs", "enable-core-tags", "file-access", "file-access-mounts", "gso", "gvisor-gro",
	"gvisor-gso", "network-processors-per-channel", "num-network-channels", "numa-binding", "panic-signal", "platform_device_path", "qdisc",
	"ref-leak-mode", "rx-checksum-offload", "software-gso", "systrap-disable-syscall-patching", "tx-checksum-offload", "watchdog-action",
}

// Check looks at every field and joins what is wrong.
func (c Config) Check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, yamlfile.FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if c.Version != 1 {
		bad("version", "is %d: this program reads version 1", c.Version)
	}
	for _, p := range []struct{ field, path string }{
		{"runtime.path", c.Runtime.Path}, {"image_store", c.ImageStore}, {"state_dir", c.StateDir},
	} {
		if !filepath.IsAbs(p.path) || filepath.Clean(p.path) != p.path || p.path == "/" {
			bad(p.field, "%q is not an absolute, clean path", p.path)
		}
	}
	if c.Image != "" && !filepath.IsAbs(c.Image) {
		bad("image", "%q is not an absolute path (an OCI layout or a root file system folder)", c.Image)
	}
	if !slices.Contains([]string{"systrap", "ptrace", "kvm"}, c.Runtime.Platform) {
		bad("runtime.platform", "%q: use systrap, ptrace or kvm", c.Runtime.Platform)
	}
	for i, f := range c.Runtime.Flags {
		name, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "=")
		switch {
		case !strings.HasPrefix(f, "-"):
			bad(fmt.Sprintf("runtime.flags[%d]", i), "%q does not begin with a dash: write --name=value in one item", f)
		case slices.Contains(ownFlags, name):
			bad(fmt.Sprintf("runtime.flags[%d]", i), "--%s is set by the runner itself: remove it", name)
		case !slices.Contains(safeFlags, name):
			bad(fmt.Sprintf("runtime.flags[%d]", i), "--%s is not among the flags that lower no wall (%s): remove it", name, strings.Join(safeFlags, ", "))
		}
	}
	if !cgroupPath.MatchString(c.CgroupParent) {
		bad("cgroup_parent", "%q: use a path below the hierarchy's root, for example /tenwalls", c.CgroupParent)
	}
	if c.EntryPoints.Profile != "deny-all" {
		bad("entry_points.profile", "%q: the only profile is deny-all", c.EntryPoints.Profile)
	}
	if !slices.Contains([]string{"ERRNO", "TRAP", "KILL"}, c.EntryPoints.Action) {
		bad("entry_points.action", "%q: use ERRNO, TRAP or KILL (runsc refuses LOG and KILL_PROCESS)", c.EntryPoints.Action)
	}
	if c.Network != "none" {
		bad("network", "%q: the only network profile is none", c.Network)
	}
	return errors.Join(append(errs, c.Limits.check()...)...)
}

func (l LimitsConfig) check() (errs []error) {
	between := func(field string, v, low, high int64, words string) {
		if v < low || v > high {
			errs = append(errs, yamlfile.FieldError{Field: "limits." + field, Problem: words})
		}
	}
	between("cpu", int64(l.CPU), int64(time.Second), int64(24*time.Hour), "must be 1s to 24h, in whole seconds: the guest kernel's limit counts seconds")
	if time.Duration(l.CPU)%time.Second != 0 {
		errs = append(errs, yamlfile.FieldError{Field: "limits.cpu", Problem: "must be in whole seconds: the guest kernel's limit counts seconds"})
	}
	between("memory", int64(l.Memory), 96<<20, 1<<40, "must be 96MiB to 1TiB: the runtime itself needs about 60 MiB of it")
	between("processes", l.Processes, 8, 1<<15, "must be 8 to 32768")
	between("scratch", int64(l.Scratch), 1<<20, int64(l.Memory), "must be 1MiB to limits.memory: scratch is memory")
	if int64(l.Scratch)%4096 != 0 {
		errs = append(errs, yamlfile.FieldError{Field: "limits.scratch", Problem: "must be in whole pages of 4096 bytes"})
	}
	between("wall", int64(l.Wall), int64(time.Second), int64(24*time.Hour), "must be 1s to 24h")
	between("output", int64(l.Output), 64<<10, 64<<20, "must be 64KiB to 64MiB: it is held in memory")
	between("artifacts", int64(l.Artifacts), 0, int64(l.Scratch), "must be 0 to limits.scratch")
	between("host_tasks", l.HostTasks, 128, 1<<20, "must be 128 or more: below it the runtime itself cannot make its threads")
	between("swap", int64(l.Swap), 0, 0, "must be 0: schema one grants no swap")
	return errs
}

// Digest identifies the effective configuration: "sha256:<hex>" over its
// canonical JSON, defaults filled in, so that a comment or an order of fields
// changes nothing.
func (c Config) Digest() (string, error) {
	// A list without items is the same whether it is given or not.
	c.Runtime.Flags = append([]string(nil), c.Runtime.Flags...)
	c.EntryPoints.Allow = append([]string(nil), c.EntryPoints.Allow...)
	data, err := sandbox.Canonical(c)
	if err != nil {
		return "", fmt.Errorf("digest runner configuration: %w", err)
	}
	return evidence.Digest(data), nil
}
