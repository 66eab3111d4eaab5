package runsc

import (
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Filter is the entry-point filter of a job: an allow list of system calls by
// name, and what happens to every other one. It is passed to runsc in the OCI
// bundle (OCI runtime spec, config-linux.md, "Seccomp") and only looked at with
// runsc's flag --oci-seccomp.
type Filter struct {
	Action string   // ERRNO (always EPERM), TRAP (SIGSYS) or KILL (SIGKILL of the thread), runsc's words without SCMP_ACT_
	Allow  []string // names as in the kernel's system call table

	// Namespaces lets clone make namespaces. False: clone is let through for
	// processes and threads, and refused when its flags hold one of a namespace.
	Namespaces bool
}

// namespaceFlags are the flags of clone(2) that make a namespace. A user
// namespace gives whoever makes it every capability in it (user_namespaces(7)).
// CLONE_NEWTIME is none of clone's: its bit is part of the exit signal there.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// absentEntryPoints are answered as by a kernel that lacks them (ENOSYS). The
// flags of clone3 stand in memory, where no filter can read them; libc falls back
// to clone at ENOSYS, and at EPERM makes no thread any more.
var absentEntryPoints = []string{"clone3"}

// denyAllEntryPoints is what the profile runsc-deny-all-v1 lets through: what a
// static program and a language runtime need to compute, to keep files in
// scratch, and to run children. No sockets, no mounts, no links, no modes, no
// attributes, no tracing, no keys, no clocks to set.
var denyAllEntryPoints = []string{
	// Files that are there, and files in scratch.
	"openat", "close", "read", "write", "pread64", "pwrite64", "readv", "writev", "lseek", "ftruncate", "fallocate",
	"fsync", "fcntl", "ioctl", "dup3", "pipe2", "newfstatat", "fstat", "statx", "statfs", "faccessat2", "getdents64",
	"getcwd", "readlinkat", "mkdirat", "unlinkat", "renameat2", "symlinkat", "memfd_create",
	// Memory.
	"mmap", "munmap", "mprotect", "madvise", "brk",
	// Processes, threads and signals.
	"clone", "execve", "exit", "exit_group", "wait4", "kill", "tgkill", "getpid", "gettid", "getuid", "getgid",
	"setsid", "futex", "set_robust_list", "set_tid_address", "rseq", "sched_yield", "sched_getaffinity", "arch_prctl",
	"prlimit64", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
	// Time, chance and waiting.
	"clock_gettime", "clock_nanosleep", "nanosleep", "getrandom", "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2",
}

// Entry points that one trial at a time lets through, so that the wall behind
// the filter is reached.
var (
	socketEntryPoints = []string{
		"socket", "connect", "bind", "sendto", "sendmsg", "recvfrom", "recvmsg", "getsockname", "getpeername",
		"getsockopt", "setsockopt", "shutdown",
	}
	fileEntryPoints = []string{
		"linkat", "name_to_handle_at", "open_by_handle_at", "mknodat", "mount", "umount2", "setxattr", "fchmodat",
		"utimensat", "truncate", "setuid", "setgid", "prctl",
	}
)

// DenyAllFilter returns the filter of the profile runsc-deny-all-v1.
func DenyAllFilter(action string) *Filter {
	return &Filter{Action: action, Allow: slices.Clone(denyAllEntryPoints)}
}

// With returns a copy that lets more entry points through.
func (f Filter) With(more ...string) *Filter {
	out := &Filter{Action: f.Action, Allow: slices.Concat(f.Allow, more), Namespaces: f.Namespaces}
	slices.Sort(out.Allow)
	out.Allow = slices.Compact(out.Allow)
	return out
}

// Absent returns what the filter answers as if the kernel did not have it: what
// is let through is not among them, and nothing is where ptrace is let through,
// because a tracer inside could then let it through itself.
func (f Filter) Absent() []string {
	if slices.Contains(f.Allow, "ptrace") {
		return nil
	}
	var out []string
	for _, n := range absentEntryPoints {
		if !slices.Contains(f.Allow, n) {
			out = append(out, n)
		}
	}
	return out
}

// SocketEntryPoints returns what the lift "entry-point filter: sockets" lets
// through.
func SocketEntryPoints() []string { return slices.Clone(socketEntryPoints) }

// FileEntryPoints returns what the lift "entry-point filter: files" lets
// through.
func FileEntryPoints() []string { return slices.Clone(fileEntryPoints) }

// spec returns the filter as the OCI bundle states it. Only the machine's own
// architecture is named, so a call by another one is refused as well.
//
// SCMP_ACT_TRACE without a tracer is ENOSYS (seccomp(2), SECCOMP_RET_TRACE), and
// ptrace(2), which makes one, is refused. It stands in for an errnoRet of ENOSYS,
// which runsc ignores.
func (f Filter) spec() *specs.LinuxSeccomp {
	allow := specs.LinuxSyscall{Names: f.Allow, Action: specs.ActAllow}
	rules := []specs.LinuxSyscall{}
	if i := slices.Index(f.Allow, "clone"); i >= 0 && !f.Namespaces {
		allow.Names = slices.Delete(slices.Clone(f.Allow), i, i+1)
		// The flags are the first argument on both architectures.
		none := specs.LinuxSeccompArg{Index: 0, Op: specs.OpMaskedEqual, Value: namespaceFlags, ValueTwo: 0}
		rules = append(rules, specs.LinuxSyscall{Names: []string{"clone"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{none}})
	}
	if absent := f.Absent(); len(absent) > 0 {
		rules = append(rules, specs.LinuxSyscall{Names: absent, Action: specs.ActTrace})
	}
	return &specs.LinuxSeccomp{
		DefaultAction: specs.LinuxSeccompAction("SCMP_ACT_" + f.Action),
		Architectures: []specs.Arch{ociArch},
		Syscalls:      append([]specs.LinuxSyscall{allow}, rules...),
	}
}
