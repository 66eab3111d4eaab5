//go:build privileged

package observers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func placeCanary(t *testing.T, file string, mode os.FileMode) {
	t.Helper()
	must(t, os.WriteFile(file, []byte("a secret of this run\n"), mode))
	must(t, os.Chmod(file, mode))
}

func TestCanaryControl(t *testing.T) {
	needRoot(t)
	file := filepath.Join(t.TempDir(), "canary")
	placeCanary(t, file, 0o600)
	canary, err := NewCanary(Local(), []string{file})
	must(t, err)
	if control := canary.Control(context.Background()); !control.Passed {
		t.Errorf("%+v", control)
	}
	must(t, canary.Close())
}

// What a watch on an inode sees through another mount of it, and what not.
func TestCanaryThroughOtherMounts(t *testing.T) {
	needRoot(t)
	folder := t.TempDir()
	lower, bound, merged := filepath.Join(folder, "lower"), filepath.Join(folder, "bound"), filepath.Join(folder, "merged")
	for _, path := range []string{lower, bound, merged} {
		must(t, os.Mkdir(path, 0o755))
	}
	placeCanary(t, filepath.Join(lower, "canary"), 0o600)
	must(t, unix.Mount(lower, bound, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(bound, 0)) })
	must(t, unix.Mount("overlay", merged, "overlay", unix.MS_RDONLY, "lowerdir="+lower+":"+t.TempDir()))
	t.Cleanup(func() { must(t, unix.Unmount(merged, 0)) })
	for _, test := range []struct {
		name, mark, read string
		seen             bool
	}{
		{"bind mount", lower, bound, true},
		{"overlay by itself", merged, merged, true},
		{"below the overlay", merged, lower, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(test.mark, "canary")
			canary, err := NewCanary(Local(), []string{file})
			must(t, err)
			defer func() { must(t, canary.Close()) }()
			_, err = os.ReadFile(filepath.Join(test.read, "canary"))
			must(t, err)
			canary.drain()
			if seen := canary.counts()[file]; (seen.opens > 0 && seen.reads > 0) != test.seen {
				t.Errorf("got %+v, want seen: %v", seen, test.seen)
			}
		})
	}
}

func TestCanaryInARealSandbox(t *testing.T) {
	for _, test := range []struct {
		name        string
		steps       []string
		mode        os.FileMode
		flags       []string
		says        string
		opens       int64 // at most: equal events merge
		reads, none bool
	}{
		{name: "refused", steps: []string{"open", "/etc/canary"}, mode: 0o600, says: "permission denied", opens: 1},
		{name: "refused by the gofer", steps: []string{"open", "/etc/canary"}, mode: 0o600, flags: []string{"--directfs=false"}, says: "permission denied", opens: 1},
		{name: "looked at", steps: []string{"stat", "/etc/canary"}, mode: 0o600, says: "<nil>", opens: 1},
		{name: "left alone", steps: []string{"open", "/etc"}, mode: 0o600, says: "<nil>", none: true},
		{name: "opened", steps: []string{"open", "/etc/canary"}, mode: 0o644, says: "<nil>", opens: 2},
		{name: "read", steps: []string{"read", "/etc/canary"}, mode: 0o644, says: "<nil>", opens: 2, reads: true},
		{name: "mapped", steps: []string{"map", "/etc/canary"}, mode: 0o644, says: "<nil>", opens: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var canary *Canary
			var watch Watch
			p := startProbe(t, probeSetup{
				steps: test.steps, flags: test.flags,
				prepare: func(image, _ string) {
					placeCanary(t, filepath.Join(image, "etc/canary"), test.mode)
					var err error
					canary, err = NewCanary(Local(), []string{filepath.Join(image, "etc/canary")})
					must(t, err)
				},
				started: func(p *probe) {
					var err error
					watch, err = canary.Watch(context.Background(), Subject{Place: "test", Cgroup: p.cgroup})
					must(t, err)
				},
			})
			watch.Sample()
			p.stop()
			watch.Ended()
			seen := watch.Stored()
			must(t, canary.Close())
			t.Logf("%q %+v", p.lines, seen)
			if !strings.Contains(strings.Join(p.lines, " "), test.says) {
				t.Errorf("the probe says %q, want %q", p.lines, test.says)
			}
			opens, reads := seen.Values["opens"].Worst, seen.Values["reads"].Worst
			if opens > test.opens || (opens == 0) != test.none || (reads > 0) != test.reads {
				t.Errorf("got %d opens and %d reads", opens, reads)
			}
			if seen.Lost != "" || seen.Values["unattributed"].Worst != 0 || (len(seen.Found) == 0) != test.none {
				t.Errorf("%+v", seen)
			}
		})
	}
}
