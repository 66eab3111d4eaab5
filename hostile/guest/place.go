package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// behind tells the place of a refusal that did not come from the entry-point
// filter, and how that is known.
type behind func(errno syscall.Errno) (hostile.Place, string)

// nowhere is the behind of acts that nothing but the filter is known to refuse.
func nowhere(errno syscall.Errno) (hostile.Place, string) {
	return hostile.Unknown, "nothing told which wall said " + errnoName(errno)
}

// refusedAt claims the refusal of a call that ended so, and tells whether there
// was one. It asks the filter first, since the filter stands in front of every
// other wall, and the walls behind it afterwards.
func (p *Probe) refusedAt(call string, trap uintptr, end ending, where behind) bool {
	switch {
	case end.failed != nil:
		p.Failed(call + ": no child to try it in: " + end.failed.Error())
	case end.signal == unix.SIGSYS || end.signal == unix.SIGKILL:
		p.Refused(hostile.SIGSYS, hostile.EntryPointFilter, call, 0,
			"the call ended a throwaway child by "+unix.SignalName(end.signal))
	case end.signal != 0:
		p.Failed(call + ": ended a throwaway child by " + unix.SignalName(end.signal))
	case end.blocked:
		p.Failed(call + ": did not come back")
	case end.errno == 0:
		return false
	default:
		p.refusedBy(call, trap, end.errno, where)
	}
	return true
}

// refusedBy claims a refusal by errno.
func (p *Probe) refusedBy(call string, trap uintptr, errno syscall.Errno, where behind) {
	kind := kindOf(errno)
	if errno == unix.EPERM {
		if refused, how, note := filterAnswer(trap); refused && how == hostile.EPERM {
			p.Refused(kind, hostile.EntryPointFilter, call, 0, note)
			return
		}
	}
	if errno == unix.ENOSYS || errno == unix.EOPNOTSUPP {
		if end := inChild(trap, harmless(trap), childTimeout); end.failed == nil && end.errno == errno {
			p.Refused(kind, hostile.GuestKernel, call, 0,
				"the guest kernel has no such act: it says the same whatever the arguments, and a filter would say EPERM or end the caller")
			return
		}
	}
	place, note := where(errno)
	if kind == hostile.Other {
		note = errnoName(errno) + ": " + note
	}
	p.Refused(kind, place, call, 0, note)
}

// owned describes who owns a file and tells whether that alone forbids us the
// wanted access (4 read, 2 write, 1 search), as path_resolution(7) has it for a
// process without capabilities.
func owned(st *unix.Stat_t, want uint32) (forbids bool, note string) {
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	shift := 0
	switch {
	case st.Uid == uid:
		shift = 6
	case st.Gid == gid:
		shift = 3
	}
	forbids = uid != 0 && (st.Mode>>shift)&want != want
	return forbids, fmt.Sprintf("there, uid %d gid %d mode %04o; we are uid %d gid %d", st.Uid, st.Gid, st.Mode&0o7777, uid, gid)
}

// byOwnership is the behind of an open of a file that has that status: EACCES is
// at the file ownership when owner and mode alone forbid the access. That the
// folders above it let us through is known from the stat itself.
func byOwnership(st *unix.Stat_t, want uint32) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		if forbids, note := owned(st, want); forbids && errno == unix.EACCES {
			return hostile.FileOwnership, note
		}
		return nowhere(errno)
	}
}

// ownMounts reads the guest's own mount table (proc_pid_mountinfo(5)).
func ownMounts() ([]*mountinfo.Info, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read own mount table: %w", err)
	}
	defer f.Close()
	mounts, err := mountinfo.GetMountsFromReader(f, nil)
	if err != nil {
		return nil, fmt.Errorf("read own mount table: %w", err)
	}
	return mounts, nil
}

// mountOf returns the mount that holds path: the last one of the longest mount
// point above it. nil when the table has none.
func mountOf(mounts []*mountinfo.Info, path string) *mountinfo.Info {
	var best *mountinfo.Info
	for _, m := range mounts {
		above := strings.TrimSuffix(m.Mountpoint, "/") + "/"
		if strings.HasPrefix(path+"/", above) && (best == nil || len(m.Mountpoint) >= len(best.Mountpoint)) {
			best = m
		}
	}
	return best
}

// readOnly tells whether a mount is read-only, itself or its file system.
func readOnly(m *mountinfo.Info) bool {
	return hasOption(m.Options, "ro") || hasOption(m.VFSOptions, "ro")
}

func hasOption(options, want string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == want {
			return true
		}
	}
	return false
}

// byMount is the behind of an act on a path: EROFS is at the read-only mount
// when the own mount table shows that mount as read-only.
func byMount(path string) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		mounts, err := ownMounts()
		if err != nil {
			return hostile.Unknown, err.Error()
		}
		if m := mountOf(mounts, path); m != nil && errno == unix.EROFS && readOnly(m) {
			return hostile.ReadOnlyMount, fmt.Sprintf("the mount table has %s as %s %s", m.Mountpoint, m.FSType, m.Options)
		}
		return nowhere(errno)
	}
}
