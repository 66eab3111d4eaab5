package observers

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const filesystemTypes = "nodev\tproc\nnodev\ttmpfs\n\text4\n\txfs\n\tsquashfs\nnodev\tzfs\n"

func TestRealFilesystems(t *testing.T) {
	h, _ := recordedHost(t)
	visible := t.TempDir()
	plant(t, h.Proc, map[string]string{
		"filesystems": filesystemTypes,
		"self/mountinfo": recorded(t, "host.mountinfo") +
			"40 27 0:60 / /over rw - overlay overlay rw,lowerdir=/a,upperdir=/nowhere/upper,workdir=/w\n" +
			"41 27 0:61 / /job rw - overlay overlay rw,lowerdir=/a,upperdir=" + visible + ",workdir=/w\n" +
			"42 27 0:62 / /image ro - overlay overlay ro,lowerdir=/a:/b\n",
	})
	systems, err := realFilesystems(h)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, system := range systems {
		got = append(got, system.mountpoint)
		if system.readOnly != (system.mountpoint == "/mnt/media") {
			t.Errorf("%s: read-only %v", system.mountpoint, system.readOnly)
		}
	}
	if want := []string{"/", "/mnt/media", "/over", "/srv"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHeldBlocksAreThoseOpenForWriting(t *testing.T) {
	h, folder := Host{Proc: t.TempDir()}, t.TempDir()
	text := strings.Repeat("x", 1<<16)
	plant(t, folder, map[string]string{"written": text, "read": text, "same": "-> written"})
	plant(t, h.Proc, map[string]string{
		"7/fd/3": "-> " + folder + "/written", "7/fdinfo/3": "pos:\t0\nflags:\t0100001\n",
		"7/fd/4": "-> " + folder + "/read", "7/fdinfo/4": "pos:\t0\nflags:\t0100000\n",
		"7/fd/5": "-> " + folder + "/same", "7/fdinfo/5": "pos:\t0\nflags:\t0100002\n",
		"7/fd/6": "-> " + folder, "7/fdinfo/6": "flags:\t0100002\n",
		"7/fd/7": "-> pipe:[1]", "7/fd/8": "-> /dev/null",
	})
	held, err := heldBlocks(h, []int{7, 8})
	if err != nil || len(held) != 1 {
		t.Fatalf("got %v, %v", held, err)
	}
	for _, bytes := range held {
		if bytes != 1<<16 {
			t.Errorf("got %d bytes", bytes)
		}
	}
}

func TestFolderBlocksCountAFileOnce(t *testing.T) {
	folder := t.TempDir()
	empty, err := folderBlocks(folder)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, folder, map[string]string{"a": strings.Repeat("x", 1<<16)})
	if err := os.Link(filepath.Join(folder, "a"), filepath.Join(folder, "b")); err != nil {
		t.Fatal(err)
	}
	if full, err := folderBlocks(folder); err != nil || full-empty != 1<<16 {
		t.Errorf("got %d beyond %d, %v", full, empty, err)
	}
}

// The worst moment counts, not the last.
func TestSpaceWatchKeepsTheWorst(t *testing.T) {
	h, _ := recordedHost(t)
	here := t.TempDir()
	plant(t, h.Proc, map[string]string{"filesystems": filesystemTypes, "self/mountinfo": "27 1 254:0 / " + here + " rw - ext4 /dev/vda rw\n"})
	armed, err := NewSpace(h, nil).Watch(context.Background(), Subject{Cgroup: "/job"})
	if err != nil {
		t.Fatal(err)
	}
	w := armed.(*spaceWatch)
	const petabyte = 1 << 50 // far beyond what others write here meanwhile
	w.systems[0].before += petabyte
	w.obs.Values["free "+here] = Reading{Before: petabyte * 2, Worst: petabyte * 2}
	w.Sample()
	low := w.obs.Values["free "+here]
	if low.Worst >= petabyte || low.Worst != low.After {
		t.Errorf("free at the worst sample: %+v", low)
	}
	w.systems[0].before -= petabyte
	w.obs.Values["free "+here] = Reading{Before: low.Before, Worst: 1}
	seen := w.Stored()
	if free := seen.Values["free "+here]; free.Worst != 1 || free.After < 2 {
		t.Errorf("free after it: %+v", free)
	}
	if drop := seen.Values["drop"]; drop.Worst < petabyte/2 || drop.After > petabyte/2 {
		t.Errorf("drop: %+v", drop)
	}
}

// A file system that can't be asked any more is a lost window, not an empty one.
func TestSpaceWatchIsLostWithItsFilesystem(t *testing.T) {
	h, _ := recordedHost(t)
	here := t.TempDir()
	gone := filepath.Join(here, "gone")
	plant(t, h.Proc, map[string]string{"filesystems": filesystemTypes, "self/mountinfo": "27 1 254:0 / " + gone + " rw - ext4 /dev/vda rw\n"})
	if _, err := NewSpace(h, nil).Watch(context.Background(), Subject{Cgroup: "/job"}); err == nil {
		t.Error("armed without its file system")
	}
	if err := os.Mkdir(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := NewSpace(h, nil).Watch(context.Background(), Subject{Cgroup: "/job", Scratch: here})
	if err != nil {
		t.Fatal(err)
	}
	w.Sample()
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	w.Sample()
	if seen := w.Stored(); seen.Lost == "" || seen.Samples != 2 || seen.Values["free "+gone].Before == 0 {
		t.Errorf("got %+v", seen)
	}
}

// A number that is given again while it is looked at must not make one file out
// of two: blocks of a file in memory, on the file system of another.
func TestHeldBlocksAreOfOneFile(t *testing.T) {
	memory, err := unix.MemfdCreate("written", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := unix.Open("space_test.go", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	turned, err := unix.Dup(stored)
	if err == nil {
		err = unix.Fallocate(memory, 0, 0, 1<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	var ours []inode
	for _, fd := range []int{memory, stored} {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		ours = append(ours, inode{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino})
	}
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		for {
			for _, fd := range []int{memory, stored} {
				if err := unix.Dup3(fd, turned, unix.O_CLOEXEC); err != nil {
					ended <- err
					return
				}
			}
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
		}
	}()
	for range 2000 {
		held, err := heldBlocks(Host{Proc: "/proc"}, []int{os.Getpid()})
		if err != nil || held[ours[0]] > 0 || held[ours[1]] > 0 {
			t.Errorf("got %v, %v", held, err)
			break
		}
		thing, err := openThingAt(Host{Proc: "/proc"}, "self", "fd/"+strconv.Itoa(turned))
		if err != nil || strings.HasPrefix(thing.link, "/memfd:") != (thing.inode() == ours[0]) {
			t.Errorf("%s is %v: %v", thing.link, thing.inode(), err)
			break
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, fd := range []int{memory, stored, turned} {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
}
