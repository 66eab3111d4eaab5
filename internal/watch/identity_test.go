package watch

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// machine makes up a host in a folder.
func machine(t *testing.T) (*Host, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"proc/sys/kernel/random/boot_id": "boot-1\n", "proc/cmdline": "quiet\n", "proc/self/mountinfo": "1 1 8:1 / / rw - ext4 /dev/sda rw\n", "sys/lsm": "lockdown,capability\n",
		"cgroup/cgroup.controllers": "cpu memory pids\n", "harness": "harness", "runsc": "runsc",
		"image/oci-layout": "{}", "image/index.json": "{}", "image/blobs/sha256/1": "x",
		"runner.yaml": "runtime:\n  path: " + dir + "/runsc\nimage: " + dir + "/image\n",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		write(t, filepath.Join(dir, name), text)
	}
	h := &Host{Proc: dir + "/proc", Security: dir + "/sys", Cgroup: dir + "/cgroup", Executable: dir + "/harness"}
	h.Uname = func(u *unix.Utsname) error { copy(u.Release[:], "6.18.0"); copy(u.Version[:], "#1 SMP"); return nil }
	return h, dir
}

// Each thing that the identity covers, changed alone, is told by its own name
// and by no other.
func TestEachChangeIsToldByItsName(t *testing.T) {
	cases := map[string]func(h *Host, dir string){
		"runsc binary": func(_ *Host, dir string) { write(t, dir+"/runsc", "RUNSC") },
		"runner configuration": func(_ *Host, dir string) {
			replaceIn(t, dir+"/runner.yaml", "image:", "network: none\nlimits:\n  cpu: 3s\nimage:")
		},
		"base image": func(_ *Host, dir string) { write(t, dir+"/image/blobs/sha256/1", "y") },
		"kernel release": func(h *Host, _ string) {
			h.Uname = func(u *unix.Utsname) error { copy(u.Release[:], "6.19.0"); copy(u.Version[:], "#1 SMP"); return nil }
		},
		"kernel version": func(h *Host, _ string) {
			h.Uname = func(u *unix.Utsname) error { copy(u.Release[:], "6.18.0"); copy(u.Version[:], "#2 SMP"); return nil }
		},
		"boot id":             func(_ *Host, dir string) { write(t, dir+"/proc/sys/kernel/random/boot_id", "boot-2\n") },
		"kernel command line": func(_ *Host, dir string) { write(t, dir+"/proc/cmdline", "init=/bin/sh\n") },
		"security modules":    func(_ *Host, dir string) { must(t, os.Remove(dir+"/sys/lsm")) },
		"harness binary":      func(_ *Host, dir string) { write(t, dir+"/harness", "HARNESS") },
		"cgroup mode": func(_ *Host, dir string) {
			must(t, os.Remove(dir+"/cgroup/cgroup.controllers"))
			for _, c := range []string{"memory", "pids", "cpuacct"} {
				must(t, os.MkdirAll(dir+"/cgroup/"+c, 0o755))
				write(t, dir+"/cgroup/"+c+"/cgroup.procs", "")
			}
		},
	}
	for what, change := range cases {
		h, dir := machine(t)
		before, watched, err := h.Read(dir+"/runner.yaml", true)
		must(t, err)
		if len(watched.Paths) != 3 || len(watched.Trees) != 1 {
			t.Errorf("watched %+v", watched)
		}
		change(h, dir)
		after, _, err := h.Read(dir+"/runner.yaml", true)
		must(t, err)
		changes := after.Changes(before)
		if len(changes) != 1 || changes[0].What != what || changes[0].Before == changes[0].After {
			t.Errorf("%s: told as %v", what, changes)
		}
	}
	// The rest is a matter of the program itself, but for the entry points, which
	// go with the configuration.
	h, dir := machine(t)
	before, _, err := h.Read(dir+"/runner.yaml", true)
	must(t, err)
	replaceIn(t, dir+"/runner.yaml", "image:", "entry_points:\n  allow: [socket]\nimage:")
	after, _, err := h.Read(dir+"/runner.yaml", true)
	must(t, err)
	if got := told(after.Changes(before)); !strings.Contains(got, "entry-point profile: deny-all ERRNO, 67 calls") || !strings.Contains(got, "68 calls") {
		t.Errorf("told as %s", got)
	}
	if got, want := len(cases)+2, reflect.TypeFor[Identity]().NumField(); got != want {
		t.Errorf("%d of %d fields were changed here", got, want)
	}
}

func replaceIn(t *testing.T, file, old, text string) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	write(t, file, string(bytes.Replace(data, []byte(old), []byte(text), 1)))
}

// An image's file with its old length and dates is another file all the same.
func TestAnImageChangedInSecretIsSeen(t *testing.T) {
	_, dir := machine(t)
	file := dir + "/image/blobs/sha256/1"
	before, err := fingerprint(dir + "/image")
	must(t, err)
	st, err := os.Stat(file)
	must(t, err)
	time.Sleep(20 * time.Millisecond) // so that the kernel's clock ticks
	write(t, file, "y")
	must(t, os.Chtimes(file, st.ModTime(), st.ModTime()))
	if after, err := fingerprint(dir + "/image"); err != nil || after == before {
		t.Errorf("%s, %v", after, err)
	}
}

// An image is walked again when something below it may have changed, when it is
// another one or something is mounted there, and now and then; else what the last
// walk came to stands, since a large one takes long.
func TestAnImageIsWalkedWhenItMayHaveChanged(t *testing.T) {
	h, dir := machine(t)
	image := func(touched bool) string {
		t.Helper()
		print, err := h.image(dir+"/image", touched)
		must(t, err)
		return print
	}
	before := image(false)
	h.walk.took = time.Hour
	write(t, dir+"/image/blobs/sha256/2", "y")
	if image(false) != before {
		t.Error("walked though nothing told of a change")
	}
	if image(true) == before {
		t.Error("not walked though something below has changed")
	}
	before = image(false)
	write(t, dir+"/proc/self/mountinfo", "1 1 8:1 / / rw - ext4 /dev/sda rw\n2 1 8:1 /x "+dir+"/image/blobs rw - ext4 /dev/sda rw\n")
	h.walk.took = time.Hour
	write(t, dir+"/image/blobs/sha256/3", "y")
	if image(false) == before {
		t.Error("not walked though something is mounted in it")
	}
	before = image(false)
	h.walk.took = time.Hour
	must(t, os.Rename(dir+"/image", dir+"/old"))
	must(t, os.MkdirAll(dir+"/image", 0o755))
	if image(false) == before {
		t.Error("not walked though another one is there")
	}
	before = image(false)
	write(t, dir+"/image/x", "y")
	h.walk.took, h.walk.at = time.Second, time.Now().Add(-walkedShare*time.Second)
	if image(false) == before {
		t.Error("not walked after a while")
	}
	must(t, os.RemoveAll(dir+"/image"))
	if print, err := h.image(dir+"/image", false); err == nil {
		t.Errorf("%s of an image that is gone", print)
	}
}

// What is written through a mapping may leave no mark.
func TestRereadSeesWhatLeavesNoMark(t *testing.T) {
	h, dir := machine(t)
	time.Sleep(25 * time.Millisecond) // until the change time is settled
	before, _, err := h.Read(dir+"/runner.yaml", false)
	must(t, err)
	reads := h.digests.Reads()
	h.Reread(dir + "/runner.yaml")
	if n := h.digests.Reads() - reads; n != 2 {
		t.Errorf("%d files read whole, want runsc and the harness", n)
	}
	after, _, err := h.Read(dir+"/runner.yaml", false)
	if must(t, err); after != before {
		t.Error(after.Changes(before))
	}
}

// A script is not the binary that is to be qualified.
func TestAScriptIsNotQualified(t *testing.T) {
	h, dir := machine(t)
	write(t, dir+"/runsc", "#!/bin/sh\nexec /usr/lib/runsc \"$@\"\n")
	if _, _, err := h.Read(dir+"/runner.yaml", true); err == nil || !strings.Contains(err.Error(), "is a script") {
		t.Error(err)
	}
}

// A comment, or the order of fields, is no other configuration.
func TestACommentChangesNothing(t *testing.T) {
	h, dir := machine(t)
	before, _, err := h.Read(dir+"/runner.yaml", true)
	must(t, err)
	replaceIn(t, dir+"/runner.yaml", "runtime:", "# what production uses\nruntime:")
	after, _, err := h.Read(dir+"/runner.yaml", true)
	must(t, err)
	if c := after.Changes(before); len(c) > 0 {
		t.Error(c)
	}
}

// What cannot be read is an error, never an empty field that equals another.
func TestWhatCannotBeReadIsAnError(t *testing.T) {
	for name, take := range map[string]func(dir string) error{
		"runsc":   func(dir string) error { return os.Remove(dir + "/runsc") },
		"harness": func(dir string) error { return os.Remove(dir + "/harness") },
		"boot id": func(dir string) error { return os.RemoveAll(dir + "/proc/sys") },
		"cmdline": func(dir string) error { return os.Remove(dir + "/proc/cmdline") },
		"cgroup":  func(dir string) error { return os.RemoveAll(dir + "/cgroup") },
		"image":   func(dir string) error { return os.RemoveAll(dir + "/image") },
		"runner":  func(dir string) error { return os.WriteFile(dir+"/runner.yaml", []byte("limits: 1"), 0o644) },
	} {
		h, dir := machine(t)
		must(t, take(dir))
		i, watched, err := h.Read(dir+"/runner.yaml", true)
		if err == nil || i != (Identity{}) || len(watched.Paths) < 2 {
			t.Errorf("%s: %+v, %v, %v", name, i, watched, err)
		}
	}
}

// A look at what has not changed reads nothing whole.
func TestAnUnchangedMachineIsNotReadWhole(t *testing.T) {
	h, dir := machine(t)
	for _, name := range []string{"runsc", "harness", "image/index.json"} { // as if they were there for long
		old := time.Now().Add(-time.Hour)
		must(t, os.Chtimes(dir+"/"+name, old, old))
	}
	time.Sleep(25 * time.Millisecond) // until the change time, which cannot be set, is settled
	for range 3 {
		_, _, err := h.Read(dir+"/runner.yaml", true)
		must(t, err)
	}
	if n := h.digests.Reads(); n != 3 {
		t.Errorf("%d files read in 3 looks at 3 files", n)
	}
}

func TestThisHost(t *testing.T) {
	h, err := ThisHost()
	must(t, err)
	if h.Executable == "" || strings.HasSuffix(h.Executable, "(deleted)") {
		t.Error(h.Executable)
	}
}
