package observers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
		link, err := os.Readlink(base + ref)
		if err != nil || !strings.HasPrefix(link, "/") {
			if err != nil && !processGone(err) {
				return nil, fmt.Errorf("read open file of process %s: %w", proc, err)
			}
			continue
		}
		thing := openThing{proc: proc, ref: ref, link: link}
		// Following the link reaches the open file itself, also a deleted one or
		// one in another mount namespace (proc_pid_fd(5)), and opens nothing.
		err = unix.Statx(unix.AT_FDCWD, base+ref, unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &thing.stat)
		switch {
		case err == nil:
			things = append(things, thing)
		case !processGone(err):
			return nil, fmt.Errorf("stat open file %s of process %s: %w", ref, proc, err)
		}
	}
	return things, nil
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
