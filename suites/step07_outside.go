package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

const source7 = "step 7: refused, read only file system: a path in each mount rather than one path"

const source7Inputs = "step 7: refused, read only file system: the inputs are mounted read-only, and a folder among them is 0777"

var readOnly = hostile.Refusal{Kind: hostile.EROFS, Place: hostile.ReadOnlyMount}

func outside(route string, expected hostile.Refusal, source string) Trial {
	return Trial{Attempt: hostile.Outside, Route: route, Expected: expected, By: reports.ByClaim, Source: source, Wants: treesUnchanged()}
}

func outsideInput(route string, expected hostile.Refusal, source string) Trial {
	t := outside(route, expected, source)
	t.Wants = inputsUnchanged()
	return t
}

var _ = place(
	Cell{Name: "outside", Cost: 200 * time.Millisecond, Inputs: outsideInputs(), Params: outsideParams},
	outside("create", readOnly, source7),
	outside("append", readOnly, source7),
	outside("truncate", readOnly, source7),
	outside("rename", readOnly, source7),
	outsideInput("inputs-create", readOnly, source7Inputs),
	outsideInput("inputs-append", readOnly, source7Inputs),
	outsideInput("inputs-rename", readOnly, source7Inputs),
	outside("unnamed-file", hostile.Refusal{Kind: hostile.EOPNOTSUPP, Place: hostile.GuestKernel}, "step 7: open(2), O_TMPFILE: EOPNOTSUPP: the runtime's kernel has no unnamed files, on no mount"),
	outside("pseudo", ownership, "step 7: where the kernel's pseudo file systems have to stay writable, the refusal there is EACCES at ownership"),
	outside("proc-sys", ownership, "step 7: /proc/sys; the runtime's own settings belong to root"),
	outside("proc-mem", hostile.Refusal{Kind: hostile.EFAULT, Place: hostile.GuestKernel}, "step 7: /proc/self/mem; proc_pid_mem(5): EFAULT where the page may not be written: the runtime's kernel forces nothing"),
)

// Behind the filter, in the cell of step 1 that lifts the same rule.
func init() {
	beside("behind-files", outside("link", readOnly, source7))
	beside("behind-files", outside("chmod", readOnly, source7))
	beside("behind-files", outside("mknod", hostile.Refusal{Kind: hostile.EPERM, Place: hostile.ProcessCredentials}, "step 7: mknod(2): EPERM without CAP_MKNOD, asked before the mount is"))
	beside("behind-files", outside("xattr", readOnly, source7))
	beside("behind-files", outside("remount", hostile.Refusal{Kind: hostile.EPERM, Place: hostile.ProcessCredentials}, "step 7: remount; mount(2): EPERM without CAP_SYS_ADMIN"))
	beside("behind-files", outsideInput("inputs-chmod", readOnly, source7Inputs))
	beside("behind-files", outsideInput("inputs-remount", hostile.Refusal{Kind: hostile.EPERM, Place: hostile.ProcessCredentials}, "step 7: remount; mount(2): EPERM without CAP_SYS_ADMIN"))
	beside("behind-files", outside("mount-over", hostile.Refusal{Kind: hostile.EPERM, Place: hostile.ProcessCredentials}, "step 7: mount over; mount(2): EPERM without CAP_SYS_ADMIN"))
}
