//go:build privileged

package observers

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestSpaceControlSeesEveryFilesystem(t *testing.T) {
	needRoot(t)
	control := NewSpace(Local(), []string{t.TempDir()}).Control(context.Background())
	t.Logf("%+v", control)
	if !control.Passed {
		t.Error(control.Reason)
	}
}

// Scratch on a host folder: what the guest writes, holds and deletes there is
// held on the host; what it writes to the runtime's own memory is not.
func TestSpaceOfARealSandbox(t *testing.T) {
	folder := t.TempDir()
	must(t, os.Chmod(folder, 0o777))
	for _, test := range []struct {
		name          string
		steps         []string
		extra         map[string]string
		held, scratch int64
	}{
		{"left alone", []string{"open", "/etc"}, map[string]string{"/scratch": folder}, 0, 0},
		{"held", []string{"fill", "/scratch/a"}, map[string]string{"/scratch": folder}, 1 << 20, 1 << 20},
		{"held and deleted", []string{"fill", "/scratch/b", "unlink", "/scratch/b"}, map[string]string{"/scratch": folder}, 1 << 20, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var watch Watch
			p := startProbe(t, probeSetup{
				steps: test.steps, extra: test.extra,
				started: func(p *probe) {
					var err error
					watch, err = NewSpace(Local(), nil).Watch(context.Background(), Subject{Place: "test", Cgroup: p.cgroup, Scratch: folder})
					must(t, err)
				},
			})
			watch.(*spaceWatch).walk = 0 // due at once
			watch.Sample()
			p.stop()
			watch.Ended()
			seen := watch.Stored()
			t.Logf("%q %+v", p.lines, seen)
			scratch := seen.Values["scratch"]
			if seen.Lost != "" || seen.Values["held"].Worst != test.held || scratch.Worst-scratch.Before != test.scratch {
				t.Errorf("held %+v, scratch %+v, lost %q", seen.Values["held"], scratch, seen.Lost)
			}
			if err := os.Remove(filepath.Join(folder, "a")); err != nil && !os.IsNotExist(err) {
				t.Error(err)
			}
		})
	}
}

func BenchmarkSpaceSample(b *testing.B) {
	watch, err := NewSpace(Local(), nil).Watch(context.Background(), Subject{Cgroup: "/tenwalls-none"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		watch.Sample()
	}
}
