package observers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openThing is one file or folder that a process keeps alive: a descriptor, its
// root or its working folder.
type openThing struct {
	proc string // the process's folder below Host.Proc: "123" or "123/task/124"
	ref  string // "fd/5", "root" or "cwd"
	link string // where the kernel says it leads, in words of the mount's own namespace
	stat unix.Statx_t
}

// openThings lists what the process at proc keeps open by path; pipes, sockets
// and anonymous inodes have none and are left out. A descriptor that is closed
// while it is looked at is left out too.
//
// Only the process's main descriptor table is read: a thread that split off its
// own with unshare(CLONE_FILES) is not followed.
func openThings(h Host, proc string, refs ...string) ([]openThing, error) {
	base := h.Proc + "/" + proc + "/"
	folder, err := os.Open(base + "fd")
	if err != nil {
		return nil, fmt.Errorf("list open files of process %s: %w", proc, err)
	}
	names, err := folder.Readdirnames(-1)
	err = errors.Join(err, folder.Close())
	if err != nil {
		return nil, fmt.Errorf("list open files of process %s: %w", proc, err)
	}
	for _, name := range names {
		refs = append(refs, "fd/"+name)
	}
	var things []openThing
	for _, ref := range refs {
		thing, err := openThingAt(h, proc, ref)
		switch {
		case err == nil && thing.link != "":
			things = append(things, thing)
		case err != nil && !processGone(err):
			return nil, fmt.Errorf("read open file %s of process %s: %w", ref, proc, err)
		}
	}
	return things, nil
}

// openThingAt reads one of them, empty when it has no path. Link and stat are
// two calls, and a descriptor's number is given again as soon as it is free: it
// looks again until both are about one file.
func openThingAt(h Host, proc, ref string) (openThing, error) {
	path := h.Proc + "/" + proc + "/" + ref
	link, err := os.Readlink(path)
	for range 8 {
		if err != nil || !strings.HasPrefix(link, "/") {
			return openThing{}, err
		}
		thing := openThing{proc: proc, ref: ref, link: link}
		// Following the link reaches the open file itself, also a deleted one or
		// one in another mount namespace (proc_pid_fd(5)), and opens nothing.
		err = unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &thing.stat)
		if err != nil {
			return openThing{}, err
		}
		if link, err = os.Readlink(path); err == nil && link == thing.link {
			return thing, nil
		}
	}
	return openThing{}, err // it changes as fast as we look: the next sample meets it again
}

// nature is what is asked of an open file beyond its stat.
type nature struct {
	magic   int64 // its file system, statfs(2)'s f_type
	writing bool  // opened for writing; a folder's or root's is true, nobody tells
}

// on tells whether the file lies on a file system of one of these kinds.
func (n nature) on(magics ...int64) bool { return slices.Contains(magics, n.magic) }

// errChanged says that a descriptor leads to another file than before, or
// nowhere.
var errChanged = errors.New("the descriptor was closed or given again")

// nature asks for it. All answers are about the file that was read before, or
// it fails with errChanged: a descriptor's number is given again as soon as it
// is free.
func (o openThing) nature(h Host) (nature, error) {
	base := h.Proc + "/" + o.proc + "/"
	fd, err := unix.Open(base+o.ref, unix.O_PATH|unix.O_CLOEXEC, 0)
	if processGone(err) {
		return nature{}, errChanged
	}
	if err != nil {
		return nature{}, fmt.Errorf("reach open file %s of process %s: %w", o.ref, o.proc, err)
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	var fsys unix.Statfs_t
	err = errors.Join(
		unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO|unix.STATX_MNT_ID, &st),
		unix.Fstatfs(fd, &fsys))
	if err != nil {
		return nature{}, fmt.Errorf("stat open file %s of process %s: %w", o.ref, o.proc, err)
	}
	if (openThing{stat: st}).inode() != o.inode() {
		return nature{}, errChanged
	}
	n := nature{magic: int64(fsys.Type), writing: true}
	number, isDescriptor := strings.CutPrefix(o.ref, "fd/")
	if !isDescriptor {
		return n, nil
	}
	// flags is octal; ino is there since Linux 5.14 (proc_pid_fdinfo(5)).
	info, err := os.ReadFile(base + "fdinfo/" + number)
	if processGone(err) {
		return nature{}, errChanged
	}
	if err != nil {
		return nature{}, fmt.Errorf("read flags of open file %s of process %s: %w", o.ref, o.proc, err)
	}
	for line := range strings.Lines(string(info)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "flags":
			flags, err := strconv.ParseInt(value, 8, 64)
			n.writing = err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY
		case "mnt_id":
			if value != strconv.FormatUint(st.Mnt_id, 10) {
				return nature{}, errChanged
			}
		case "ino":
			if value != strconv.FormatUint(st.Ino, 10) {
				return nature{}, errChanged
			}
		}
	}
	return n, nil
}

func (o openThing) inode() inode {
	return inode{o.stat.Dev_major, o.stat.Dev_minor, o.stat.Ino}
}

// processGone tells whether err only says that a process or descriptor ended
// while it was read: proc(5) answers ENOENT or ESRCH then, and EINVAL for the
// mount table of a zombie.
func processGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL)
}

// distinctFiles returns one process of each descriptor table. The runtime's
// stub processes share the sandbox's table, so that reading it once is enough,
// however many processes the guest makes.
func distinctFiles(h Host, pids []int) []int {
	if h.Proc != "/proc" {
		return pids // a recorded tree: kcmp(2) knows only this machine's processes
	}
	const kcmpFiles = 2 // KCMP_FILES of linux/kcmp.h; golang.org/x/sys has no wrapper
	var distinct []int
next:
	for _, pid := range pids {
		for _, known := range distinct {
			order, _, errno := unix.RawSyscall6(unix.SYS_KCMP, uintptr(known), uintptr(pid), kcmpFiles, 0, 0, 0)
			if errno == 0 && order == 0 {
				continue next // without kcmp every table is read: slower, not blinder
			}
		}
		distinct = append(distinct, pid)
	}
	return distinct
}
