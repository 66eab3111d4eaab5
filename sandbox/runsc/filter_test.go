package runsc

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/internal/syscalls"
)

// otherArch are names of the list that only one architecture has.
var otherArch = map[string][]string{"arm64": {"arch_prctl"}}

func TestEntryPointsAreKnown(t *testing.T) {
	for name, list := range map[string][]string{
		"deny-all": denyAllEntryPoints, "sockets": socketEntryPoints, "files": fileEntryPoints,
	} {
		for i, n := range list {
			if _, ok := syscalls.Number(n); !ok && !slices.Contains(otherArch[runtime.GOARCH], n) {
				t.Errorf("%s: no system call is named %q", name, n)
			}
			if slices.Contains(list[:i], n) {
				t.Errorf("%s: %q is there twice", name, n)
			}
		}
	}
}

func TestDenyAllIsSmall(t *testing.T) {
	f := DefaultConfig().Walls().Filter
	if n := len(f.Allow); n < 55 || n > 75 {
		t.Errorf("%d entry points are let through", n)
	}
	if !slices.IsSorted(f.Allow) || len(slices.Compact(slices.Clone(f.Allow))) != len(f.Allow) {
		t.Errorf("not sorted, or one twice: %v", f.Allow)
	}
}

// What no compiler, interpreter or grader needs, and what kernels are broken
// through.
func TestDenyAllLeavesOut(t *testing.T) {
	exact := slices.Concat(socketEntryPoints, fileEntryPoints, []string{
		"accept", "accept4", "listen", "socketpair", "recvmmsg", "sendmmsg",
		"clone3", "bpf", "perf_event_open", "userfaultfd", "unshare", "setns", "chroot", "pivot_root", "fsopen", "fsmount", "move_mount",
		"open_tree", "mount_setattr", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
		"swapon", "swapoff", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "pidfd_open", "seccomp", "prctl", "personality",
		"capset", "setresuid", "setresgid", "setreuid", "setregid", "setgroups", "setfsuid", "setfsgid", "iopl", "ioperm", "modify_ldt",
		"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "syslog", "acct", "quotactl",
		"chmod", "fchmod", "chown", "fchown", "lchown", "fchownat", "link", "mknod", "fanotify_init", "inotify_init1", "memfd_secret",
		"vmsplice", "splice", "tee", "setrlimit", "sched_setaffinity", "setpriority", "msgget", "semget", "shmget", "mq_open",
	})
	for _, n := range DenyAllFilter("ERRNO").Allow {
		if slices.Contains(exact, n) {
			t.Errorf("%s is let through", n)
		}
		for _, part := range []string{"socket", "mount", "ptrace", "key", "io_uring", "module", "xattr", "landlock", "uring", "sysctl"} {
			if strings.Contains(n, part) {
				t.Errorf("%s is let through", n)
			}
		}
	}
}

func TestWithAddsToACopy(t *testing.T) {
	f := DenyAllFilter("KILL")
	f.Allow = slices.Grow(f.Allow, 8) // room in which an append would be seen by both
	before, room := slices.Clone(f.Allow), f.Allow[:len(f.Allow)+1]
	more := f.With("socket", "bind", "read", "socket")
	if !slices.Equal(f.Allow, before) || room[len(before)] != "" {
		t.Error("With changed its receiver")
	}
	if len(more.Allow) != len(before)+2 || !slices.IsSorted(more.Allow) || more.Action != "KILL" {
		t.Errorf("With made %d of %d names, action %s", len(more.Allow), len(before), more.Action)
	}
	more.Allow[0] = "changed"
	if DenyAllFilter("KILL").With().Allow[0] == "changed" {
		t.Error("two filters share their names")
	}
	for _, list := range [][]string{SocketEntryPoints(), FileEntryPoints()} {
		list[0] = "changed"
	}
	if SocketEntryPoints()[0] == "changed" || FileEntryPoints()[0] == "changed" {
		t.Error("the lists of the lifts can be changed from outside")
	}
}

func TestFilterInTheBundle(t *testing.T) {
	for _, action := range []string{"ERRNO", "TRAP", "KILL"} {
		s := DenyAllFilter(action).With("socket").spec()
		if string(s.DefaultAction) != "SCMP_ACT_"+action {
			t.Errorf("default action %s", s.DefaultAction)
		}
		if len(s.Architectures) != 1 || s.Architectures[0] != ociArch {
			t.Errorf("architectures %v: a call by another one would be let through", s.Architectures)
		}
		if all := s.Syscalls[0]; all.Action != "SCMP_ACT_ALLOW" || !slices.Contains(all.Names, "socket") || slices.Contains(all.Names, "clone") || len(all.Args) != 0 {
			t.Errorf("rules %+v", s.Syscalls)
		}
	}
}

// Of clone's flags those of every namespace are refused; clone3, whose flags
// nothing can read, is answered as absent unless somebody lets it through.
func TestFilterOfNamespaces(t *testing.T) {
	flags := uint64(0)
	for _, f := range []uint64{
		unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET,
	} {
		flags |= f
	}
	clone := specs.LinuxSyscall{Names: []string{"clone"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Op: specs.OpMaskedEqual, Value: flags}}}
	clone3 := specs.LinuxSyscall{Names: []string{"clone3"}, Action: specs.ActTrace}
	open := DenyAllFilter("ERRNO")
	open.Namespaces = true
	for name, c := range map[string]struct {
		filter *Filter
		rules  []specs.LinuxSyscall // beyond the first
		absent []string
	}{
		"the profile's":          {DenyAllFilter("ERRNO"), []specs.LinuxSyscall{clone, clone3}, []string{"clone3"}},
		"with more":              {DenyAllFilter("TRAP").With("socket"), []specs.LinuxSyscall{clone, clone3}, []string{"clone3"}},
		"namespaces let through": {open.With("socket"), []specs.LinuxSyscall{clone3}, []string{"clone3"}},
		"clone3 let through":     {DenyAllFilter("ERRNO").With("clone3"), []specs.LinuxSyscall{clone}, nil},
		"ptrace let through":     {DenyAllFilter("ERRNO").With("ptrace"), []specs.LinuxSyscall{clone}, nil},
		"no clone":               {&Filter{Action: "ERRNO", Allow: []string{"read"}}, []specs.LinuxSyscall{clone3}, []string{"clone3"}},
	} {
		before := slices.Clone(c.filter.Allow)
		rules := c.filter.spec().Syscalls
		if !reflect.DeepEqual(rules[1:], c.rules) || !slices.Equal(c.filter.Absent(), c.absent) {
			t.Errorf("%s: rules %+v, absent %v", name, rules[1:], c.filter.Absent())
		}
		if slices.Contains(rules[0].Names, "clone") != c.filter.Namespaces || !slices.Equal(before, c.filter.Allow) {
			t.Errorf("%s: let through %v", name, rules[0].Names)
		}
	}
}
