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
		case err != nil && !processGone(h, proc, err):
			return nil, fmt.Errorf("read open file %s of process %s: %w", ref, proc, err)
		}
	}
	return things, nil
}

// openThingAt reads one of them, empty when it has no path. A descriptor's number
// is given again as soon as it is free, so all that is read is read of one handle
// (open(2), O_PATH), in this thread, whose descriptors may be its own. It reaches
// a deleted file and one in another mount namespace as well (proc_pid_fd(5)).
func openThingAt(h Host, proc, ref string) (openThing, error) {
	path := h.Proc + "/" + proc + "/" + ref
	link, err := os.Readlink(path)
	if err != nil || !strings.HasPrefix(link, "/") {
		return openThing{}, err // a handle of each of many sockets would cost more
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return openThing{}, err
	}
	defer unix.Close(fd)
	thing := openThing{proc: proc, ref: ref}
	if thing.link, err = os.Readlink("/proc/thread-self/fd/" + strconv.Itoa(fd)); err != nil {
		return openThing{}, err
	}
	if !strings.HasPrefix(thing.link, "/") {
		return openThing{}, nil
	}
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &thing.stat)
	return thing, err
}

// errChanged says that a descriptor leads to another file than before, or
// nowhere.
var errChanged = errors.New("the descriptor was closed or given again")

// on tells whether the file lies on a file system of one of these kinds, f_type
// of statfs(2). Asking may block where its server is gone.
func (o openThing) on(h Host, magics ...int64) (bool, error) {
	magic, err := o.filesystem(h)
	return err == nil && slices.Contains(magics, magic), err
}

// filesystem asks for f_type of statfs(2).
func (o openThing) filesystem(h Host) (magic int64, err error) {
	fd, err := unix.Open(h.Proc+"/"+o.proc+"/"+o.ref, unix.O_PATH|unix.O_CLOEXEC, 0)
	if processGone(h, o.proc, err) {
		return 0, errChanged
	}
	if err != nil {
		return 0, fmt.Errorf("reach open file %s of process %s: %w", o.ref, o.proc, err)
	}
	defer unix.Close(fd)
	var now unix.Statx_t
	var st unix.Statfs_t
	err = errors.Join(
		unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &now),
		unix.Fstatfs(fd, &st))
	if err != nil {
		return 0, fmt.Errorf("stat open file %s of process %s: %w", o.ref, o.proc, err)
	}
	if (openThing{stat: now}).inode() != o.inode() {
		return 0, errChanged
	}
	return int64(st.Type), nil
}

// writing tells whether a descriptor was opened for writing, by its flags
// (proc_pid_fdinfo(5), octal); one whose flags can't be read counts as such.
func (o openThing) writing(h Host) (bool, error) {
	info, err := os.ReadFile(h.Proc + "/" + o.proc + "/fdinfo/" + strings.TrimPrefix(o.ref, "fd/"))
	if processGone(h, o.proc, err) {
		return false, errChanged
	}
	if err != nil {
		return false, fmt.Errorf("read flags of open file %s of process %s: %w", o.ref, o.proc, err)
	}
	writing := true
	for line := range strings.Lines(string(info)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "flags":
			flags, err := strconv.ParseInt(value, 8, 64)
			writing = err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY
		case "mnt_id":
			if value != strconv.FormatUint(o.stat.Mnt_id, 10) {
				return false, errChanged
			}
		case "ino": // since Linux 5.14
			if value != strconv.FormatUint(o.stat.Ino, 10) {
				return false, errChanged
			}
		}
	}
	return writing, nil
}

func (o openThing) inode() inode {
	return inode{o.stat.Dev_major, o.stat.Dev_minor, o.stat.Ino}
}

// processGone tells whether err only says that a process or descriptor ended
// while it was read: proc(5) answers ENOENT or ESRCH then, EINVAL for the mount
// table of a zombie, and EACCES where a link is followed of a process that was
// there when its folder was looked up (fs/proc/namespaces.c, proc_ns_readlink).
func processGone(h Host, proc string, err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, fs.ErrPermission) && ending(h, proc)
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
