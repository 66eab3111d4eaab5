package main

import (
	"fmt"
	"os"
	"path"
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
		switch a := askFilter([]uintptr{trap})[0]; {
		case a.undecided:
			p.Refused(kind, hostile.Unknown, call, 0, "the kernel says EPERM to this call whatever its arguments, as a filter would")
			return
		case a.refused && a.errno == unix.EPERM:
			p.Refused(kind, hostile.EntryPointFilter, call, 0, saysEPERM)
			return
		}
	}
	if errno == unix.ENOSYS || errno == unix.EOPNOTSUPP {
		if end := inChild(trap, harmless(trap), childTimeout); end.failed == nil && end.errno == errno {
			p.Refused(kind, hostile.GuestKernel, call, 0,
				"the guest kernel has no such act: it says the same whatever the arguments, and this profile's filter says EPERM or ends the caller, but for clone3")
			return
		}
	}
	place, note := where(errno)
	if kind == hostile.Other {
		note = errnoName(errno) + ": " + note
	}
	p.Refused(kind, place, call, 0, note)
}

// identity is whom the kernel takes a process for.
type identity struct{ uid, gid uint32 }

func ownIdentity() identity { return identity{uint32(os.Getuid()), uint32(os.Getgid())} }

// owned describes who owns a file, and us.
func owned(st *unix.Stat_t, want uint32) (forbids bool, note string) {
	return ownIdentity().forbidden(st, want)
}

// forbidden tells whether owner and mode of a file alone forbid the wanted access
// (4 read, 2 write, 1 search), as path_resolution(7) has it for a process
// without capabilities.
func (id identity) forbidden(st *unix.Stat_t, want uint32) (forbids bool, note string) {
	shift := 0
	switch {
	case st.Uid == id.uid:
		shift = 6
	case st.Gid == id.gid:
		shift = 3
	}
	forbids = id.uid != 0 && (st.Mode>>shift)&want != want
	return forbids, fmt.Sprintf("there, uid %d gid %d mode %04o; we are uid %d gid %d", st.Uid, st.Gid, st.Mode&0o7777, id.uid, id.gid)
}

// byOwnership is the behind of an open of a file that has that status. That the
// folders above it let us through is known from the stat itself.
func byOwnership(st *unix.Stat_t, want uint32) behind { return ownIdentity().behind(st, want) }

// behind says that EACCES is at the file ownership when owner and mode alone
// forbid the access.
func (id identity) behind(st *unix.Stat_t, want uint32) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		if forbids, note := id.forbidden(st, want); forbids && errno == unix.EACCES {
			return hostile.FileOwnership, note
		}
		return nowhere(errno)
	}
}

// bySearch is the behind of reaching a path that cannot even be looked at: EACCES
// is at the ownership of the first folder above it that does not let us through.
func bySearch(name string) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		for above := path.Dir(name); errno == unix.EACCES; above = path.Dir(above) {
			var st unix.Stat_t
			if unix.Stat(above, &st) == nil {
				place, note := byOwnership(&st, unix.X_OK)(errno)
				return place, above + ": " + note
			}
			if above == path.Dir(above) {
				break
			}
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

// mountOf returns the mount that holds name: the last one of the longest mount
// point above it. nil when the table has none.
func mountOf(mounts []*mountinfo.Info, name string) *mountinfo.Info {
	var best *mountinfo.Info
	for _, m := range mounts {
		above := strings.TrimSuffix(m.Mountpoint, "/") + "/"
		if strings.HasPrefix(name+"/", above) && (best == nil || len(m.Mountpoint) >= len(best.Mountpoint)) {
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
func byMount(name string) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		mounts, err := ownMounts()
		if err != nil {
			return hostile.Unknown, err.Error()
		}
		if m := mountOf(mounts, name); m != nil && errno == unix.EROFS && readOnly(m) {
			return hostile.ReadOnlyMount, fmt.Sprintf("the mount table has %s as %s %s", m.Mountpoint, m.FSType, m.Options)
		}
		return nowhere(errno)
	}
}
