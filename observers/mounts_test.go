package observers

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// plant writes files of a recorded tree; a text that begins with "-> " makes a link.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		path = filepath.Join(root, path)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if target, ok := strings.CutPrefix(text, "-> "); ok && err == nil {
			err = os.Symlink(target, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/mounts", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// recordedHost has the recorded host's table and the job's grants in it.
func recordedHost(t *testing.T, grants ...spot) (Host, *hostMounts) {
	t.Helper()
	h := Host{Proc: t.TempDir(), Cgroup: t.TempDir()}
	plant(t, h.Proc, map[string]string{"self/mountinfo": recorded(t, "host.mountinfo"), "self/ns/mnt": "-> mnt:[0]", "self/status": "Seccomp:\t0\nSeccomp_filters:\t0\n"})
	m, err := readHostMounts(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.spots = grants
	return h, m
}

func TestSpotsOfHostPaths(t *testing.T) {
	_, m := recordedHost(t)
	for path, want := range map[string]spot{
		"/var/lib/image":      {254, 0, "/var/lib/image"},
		"/srv/inputs/1":       {254, 16, "/inputs/1"},
		"/srv":                {254, 16, "/"},
		"/srvice":             {254, 0, "/srvice"},
		"/mnt/again/inputs/1": {254, 16, "/inputs/1"},
		"/mnt/hidden/x":       {0, 25, "/x"},
	} {
		if got, ok := m.find(path); !ok || got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
		if words := m.words(want); strings.HasPrefix(path, "/srv/") && words != path {
			t.Errorf("%v in words: %q", want, words)
		}
	}
}

func TestForeignMounts(t *testing.T) {
	image := spot{254, 0, "/var/lib/image"}
	_, m := recordedHost(t, image, spot{254, 16, "/inputs/1"})
	for _, test := range []struct {
		name, line              string
		foreign, root, writable bool
		inputs, given           bool
	}{
		{name: "root", line: "96 91 254:0 /var/lib/image / ro,relatime - ext4 /dev/vda rw", root: true},
		{name: "writable root", line: "96 91 254:0 /var/lib/image / rw,relatime - ext4 /dev/vda rw", root: true, writable: true},
		{name: "root of a read-only file system", line: "96 91 254:0 /var/lib/image / rw,relatime - ext4 /dev/vda ro", root: true},
		{name: "input", line: "97 96 254:16 /inputs/1 /inputs ro - xfs /dev/vdb rw", inputs: true},
		{name: "writable input", line: "97 96 254:16 /inputs/1 /inputs rw - xfs /dev/vdb rw", inputs: true, given: true},
		{name: "within an input", line: "97 96 254:16 /inputs/1/deep /inputs ro - xfs /dev/vdb rw", inputs: true},
		{name: "writable elsewhere", line: "97 96 254:16 /inputs/1 /scratch rw - xfs /dev/vdb rw"},
		{name: "neighbour's input", line: "97 96 254:16 /inputs/2 /inputs ro - xfs /dev/vdb rw", foreign: true},
		{name: "like name", line: "97 96 254:16 /inputs/10 /inputs ro - xfs /dev/vdb rw", foreign: true},
		{name: "shared parent", line: "97 96 254:16 /inputs /inputs ro - xfs /dev/vdb rw", foreign: true},
		{name: "same path, other file system", line: "97 96 254:0 /inputs/1 /inputs ro - ext4 /dev/vda rw", foreign: true},
		{name: "scaffold", line: "43 67 0:42 / / ro,relatime - tmpfs runsc-root rw"},
		{name: "a host tmpfs of that name", line: "43 67 0:50 / / ro,relatime - tmpfs runsc-root rw", foreign: true},
		{name: "disk of that name", line: "43 67 254:48 / / ro,relatime - ext4 runsc-root rw", foreign: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(test.line+"\n"), nil)
			if err != nil {
				t.Fatal(err)
			}
			scan := &mountScan{mounts: map[string]string{}}
			scan.judgeMount(m, "7", mounts[0])
			if len(scan.mounts) == 1 != test.foreign || scan.root != test.root || scan.writable != test.writable ||
				scan.inputs != test.inputs || scan.given != test.given {
				t.Errorf("got %+v", scan)
			}
		})
	}
}

func TestForeignOpenFiles(t *testing.T) {
	h, m := recordedHost(t, spot{254, 0, "/var/lib/image"}, spot{254, 16, "/inputs/1"})
	job := map[int]*mountinfo.Info{}
	table, err := mountinfo.GetMountsFromReader(strings.NewReader(recorded(t, "gofer.mountinfo")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, mount := range table {
		job[mount.ID] = mount
	}
	own := []string{"/run/job/bundle/config.json", "/run/job/log/*"}
	for _, test := range []struct {
		link    string
		mount   uint64
		allowed bool
	}{
		{"/root/etc/passwd", 96, true},
		{"/root/inputs/a (deleted)", 97, true},
		{"/root", 91, true},
		{"/srv/inputs/1/a", 28, true},
		{"/mnt/again/inputs/1/a", 29, true},
		{"/srv/inputs/2/a", 28, false},
		{"/var/lib/image/etc", 27, true},
		{"/var/lib", 27, false},
		{"/run/job/bundle/config.json", 27, true},
		{"/run/job/bundle/config.jsonx", 27, false},
		{"/run/job/log/boot.txt", 27, true},
		{"/run/job/bundle/config.json", 777, false}, // a mount that no table lists
	} {
		thing := openThing{proc: "7", ref: "fd/3", link: test.link, stat: unix.Statx_t{Mnt_id: test.mount, Mode: unix.S_IFREG | 0o644, Nlink: 1}}
		if got := allowedOpen(h, m, job, thing, own); got != test.allowed {
			t.Errorf("%s on mount %d: allowed %v", test.link, test.mount, got)
		}
	}
}

func TestRuntimeFilesOfArguments(t *testing.T) {
	args := []string{"runsc", "--debug-log=/var/log/job/", "-log", "/var/log/%ID%.json", "--root=/run/runsc", "run", "--bundle", "/run/b", "relative", "--panic-log=x"}
	want := []string{"/var/log/job/*", "/var/log/*", "/run/b/config.json"}
	if got := runtimeFiles([]byte(strings.Join(args, "\x00"))); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJobPIDsOfBothCgroupVersions(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"v1":     {"pids/job/cgroup.procs": "12\n7\n", "memory/job/cgroup.procs": "7\n9\n", "memory/other/cgroup.procs": "1\n"},
		"v2":     {"job/cgroup.procs": "7\n9\n12\n", "cgroup.procs": "1\n"},
		"nested": {"job/cgroup.procs": "", "job/a/cgroup.procs": "7\n12\n", "job/a/b/cgroup.procs": "9\n"},
	} {
		root := t.TempDir()
		plant(t, root, files)
		if got, err := jobPIDs(Host{Cgroup: root}, "/job"); err != nil || !slices.Equal(got, []int{7, 9, 12}) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if _, err := jobPIDs(Host{Cgroup: root}, "/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: no cgroup: %v", name, err)
		}
		if _, err := jobPIDs(Host{Cgroup: root}, "/"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the root cgroup is nobody's job: %v", name, err)
		}
	}
}

const (
	starting = "Name:\texe\nSeccomp:\t0\nSeccomp_filters:\t0\n"
	locked   = "Name:\texe\nSeccomp:\t2\nSeccomp_filters:\t1\n"
)

// A watch over a recorded host: a namespace is judged once all of its processes
// have a filter of their own, whatever the tables show before.
func TestMountsWatchJudgesTheLockedIn(t *testing.T) {
	h, _ := recordedHost(t)
	plant(t, h.Cgroup, map[string]string{"pids/job/cgroup.procs": "100\n101\n102\n"})
	for pid, namespace := range map[string]string{"100": "mnt:[1]", "101": "mnt:[1]", "102": "mnt:[0]"} {
		plant(t, filepath.Join(h.Proc, pid), map[string]string{
			"status": starting, "mountinfo": recorded(t, "host.mountinfo"), "cmdline": "", "ns/mnt": "-> " + namespace,
			// The recorded links are words only: what they lead to belongs to another machine.
			"root": "-> recorded:", "cwd": "-> recorded:", "fd/0": "-> pipe:[1]",
		})
	}
	w, err := NewMounts(h).Watch(context.Background(), Subject{Place: "p", Cgroup: "/job"})
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"all start", "one that starts has a stub"} {
		w.Sample()
		if seen := w.(*mountsWatch).obs; seen.Values["foreign_mounts"].Worst != 0 || seen.Values["judged"].Worst != 0 {
			t.Errorf("%s: %+v", what, seen)
		}
		plant(t, h.Proc, map[string]string{"101/status": locked})
	}
	plant(t, h.Proc, map[string]string{"100/status": locked})
	w.Sample()
	w.Ended()
	seen := w.Stored()
	lines := int64(strings.Count(recorded(t, "host.mountinfo"), "\n"))
	if seen.Values["foreign_mounts"].Worst != lines || seen.Values["judged"].Worst != 1 || len(seen.Found) != min(int(lines), MaxFound+1) {
		t.Errorf("after it: %+v", seen)
	}
	if !strings.Contains(seen.Lost, "only 1") {
		t.Errorf("lost: %q", seen.Lost)
	}
}

// A grant that is made after the watch was armed is a grant all the same.
func TestMountsWatchLearnsLateGrants(t *testing.T) {
	h, _ := recordedHost(t)
	late := filepath.Join(t.TempDir(), "late")
	plant(t, h.Cgroup, map[string]string{"job/cgroup.procs": "100\n"})
	plant(t, filepath.Join(h.Proc, "100"), map[string]string{
		"status": locked, "mountinfo": "96 91 254:0 " + late + " / ro - ext4 /dev/vda rw\n", "cmdline": "",
		"ns/mnt": "-> mnt:[1]", "root": "-> recorded:", "cwd": "-> recorded:", "fd/0": "-> pipe:[1]",
	})
	w, err := NewMounts(h).Watch(context.Background(), Subject{Cgroup: "/job", Grants: []string{late}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(late, 0o755); err != nil {
		t.Fatal(err)
	}
	w.Sample()
	if seen := w.(*mountsWatch); len(seen.obs.Found) != 0 || !seen.root {
		t.Errorf("got %+v", seen.obs)
	}
}

// The runtime's own list, over real files: what looks like one of them by name
// alone is foreign.
func TestRuntimeOwnFiles(t *testing.T) {
	folder := t.TempDir()
	plant(t, folder, map[string]string{"cpu.max": "", "memfd:x": "", "closed/x": ""})
	if err := os.Chmod(filepath.Join(folder, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]bool{
		"/dev/null": true, "/dev/zero": false, "/proc/self/fd": true, "/proc/self/task": false,
		folder + "/cpu.max": false, folder + "/closed": false, folder + "/memfd:x": false,
	} {
		h := Host{Proc: t.TempDir()}
		plant(t, h.Proc, map[string]string{"7/fd/3": "-> " + target, "7/fdinfo/3": "flags:\t0100000\n"})
		things, err := openThings(h, "7")
		if err != nil || len(things) != 1 {
			t.Fatalf("%s: %v, %v", target, things, err)
		}
		if got := runtimeOwn(h, things[0]); got != want {
			t.Errorf("%s: got %v", target, got)
		}
		for _, of := range []string{"ino:\t1\n", "mnt_id:\t0\n"} { // another file by now
			plant(t, h.Proc, map[string]string{"7/fdinfo/3": "flags:\t0100000\n" + of})
			if _, err := things[0].writing(h); !errors.Is(err, errChanged) {
				t.Errorf("%s: got %v", target, err)
			}
		}
		if err := os.Remove(filepath.Join(h.Proc, "7/fd/3")); err != nil {
			t.Fatal(err)
		}
		plant(t, h.Proc, map[string]string{"7/fd/3": "-> " + folder})
		if _, err := things[0].on(h, 0); !errors.Is(err, errChanged) {
			t.Errorf("%s: got %v", target, err)
		}
	}
}

func TestMountsWatchOfNobodyIsLost(t *testing.T) {
	h, _ := recordedHost(t)
	w, err := NewMounts(h).Watch(context.Background(), Subject{Cgroup: "/job"})
	if err != nil {
		t.Fatal(err)
	}
	w.Sample()
	if seen := w.Stored(); seen.Lost == "" || seen.Samples != 0 {
		t.Errorf("got %+v", seen)
	}
}

// A process that is seen before its execve(2) has the words of what made it. Those
// of the program that locks itself in count.
func TestMountsWatchLearnsFilesOfWhoLocksItselfIn(t *testing.T) {
	h, _ := recordedHost(t)
	plant(t, h.Cgroup, map[string]string{"job/cgroup.procs": "100\n"})
	plant(t, filepath.Join(h.Proc, "100"), map[string]string{
		"status": "Seccomp:\t0\nSeccomp_filters:\t0\n", "mountinfo": "", "cmdline": "runsc\x00--log=/of/who/made/it\x00",
		"ns/mnt": "-> mnt:[1]", "root": "-> recorded:", "cwd": "-> recorded:", "fd/0": "-> pipe:[1]",
	})
	w, err := NewMounts(h).Watch(context.Background(), Subject{Cgroup: "/job"})
	if err != nil {
		t.Fatal(err)
	}
	w.Sample()
	plant(t, filepath.Join(h.Proc, "100"), map[string]string{"status": locked, "cmdline": "runsc-gofer\x00--bundle=/run/b\x00"})
	w.Sample()
	if own := w.(*mountsWatch).own; !slices.Equal(own, []string{"/run/b/config.json"}) {
		t.Errorf("got %q", own)
	}
}
