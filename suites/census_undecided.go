package suites

import "tenwalls.dev/harness/sandbox/runsc"

// kernelSaysEPERM are the calls of which an EPERM tells nothing: a runsc says it
// before it looks at any argument, for want of a capability (measured with no
// filter), and the filter lets nobody make a namespace in which to have it. For
// all but the first six it says so to every capability as well, because it wants
// them in the first namespaces or has no more of the call than that answer.
// Names of another machine than this one are passed over.
//
// They are not unknown for that: where the filter answers by a signal instead
// (the trial bySignal), an EPERM can be nobody's but the kernel's.
var kernelSaysEPERM = []string{
	"pivot_root", "chroot", "mount", "umount2", "sethostname", "setdomainname",
	"sched_setparam", "sched_rr_get_interval", "vhangup", "modify_ldt", "_sysctl", "adjtimex", "acct", "settimeofday",
	"swapon", "swapoff", "reboot", "iopl", "ioperm", "create_module", "init_module", "delete_module", "quotactl",
	"lookup_dcookie", "clock_settime", "kexec_load", "ioprio_set", "ioprio_get", "migrate_pages", "move_pages",
	"clock_adjtime", "kcmp", "finit_module", "kexec_file_load", "bpf",
}

// bySignal is the route that decides them.
const bySignal = "by-signal"

// answerBySignal changes how the filter refuses, and nothing of what.
func answerBySignal(w *runsc.Walls) {
	if w.Filter != nil && w.Filter.Action == "ERRNO" {
		f := *w.Filter
		f.Action = "TRAP"
		w.Filter = &f
	}
}
