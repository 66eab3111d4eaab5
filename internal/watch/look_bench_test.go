package watch

import (
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkLook is what a tick costs when nothing has changed: the daemon's own
// configuration, the folders and the identity.
func BenchmarkLook(b *testing.B) {
	h := &Host{Proc: "/proc", Security: "/sys/kernel/security", Cgroup: "/sys/fs/cgroup", Executable: "/proc/self/exe", Uname: unix.Uname}
	dir := b.TempDir()
	for name, text := range map[string]string{"runsc": "runsc", "runner.yaml": "runtime:\n  path: " + dir + "/runsc\n", "harness.yaml": "runner: runner.yaml\n"} {
		if err := replace(dir+"/"+name, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	f, err := OpenFiles()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cfg, err := LoadConfig(dir + "/harness.yaml")
		if err != nil {
			b.Fatal(err)
		}
		_, watched, err := h.Read(cfg.Runner, false)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.Watch(watched); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}
