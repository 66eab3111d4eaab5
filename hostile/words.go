// Package hostile is the vocabulary and the catalogue of the hostile attempts:
// which acts are tried, by which routes, and in which words a refusal or a claim
// is told. The payload that runs inside the sandbox (package guest), the trials
// (package suites) and the reports share these words and no others.
//
// What this package does not prove: nothing here touches a sandbox. A word in
// the catalogue says what is tried, not that anything refused it.
package hostile

import "fmt"

// Kind says how an act was refused. The list is closed: an unknown word is a
// fault of the program that spoke it.
type Kind string

// Kinds of refusal. The errno kinds are the names of errno(3).
const (
	EACCES        Kind = "EACCES"
	EPERM         Kind = "EPERM"
	SIGSYS        Kind = "SIGSYS" // the entry-point filter ended the caller (seccomp(2), SECCOMP_RET_TRAP or KILL)
	ENOSPC        Kind = "ENOSPC"
	EAGAIN        Kind = "EAGAIN"
	ENOMEM        Kind = "ENOMEM"
	EROFS         Kind = "EROFS"
	EXDEV         Kind = "EXDEV"
	ENOENT        Kind = "ENOENT"
	EBADF         Kind = "EBADF"
	ENOTDIR       Kind = "ENOTDIR"
	EINVAL        Kind = "EINVAL"
	EBUSY         Kind = "EBUSY"
	EIO           Kind = "EIO"
	ELOOP         Kind = "ELOOP"
	EMFILE        Kind = "EMFILE"
	ENOSYS        Kind = "ENOSYS"
	ENODEV        Kind = "ENODEV"
	EOPNOTSUPP    Kind = "EOPNOTSUPP"
	EAFNOSUPPORT  Kind = "EAFNOSUPPORT"
	ENETUNREACH   Kind = "ENETUNREACH"
	EHOSTUNREACH  Kind = "EHOSTUNREACH"
	EADDRNOTAVAIL Kind = "EADDRNOTAVAIL"
	ECONNREFUSED  Kind = "ECONNREFUSED"
	ETIMEDOUT     Kind = "ETIMEDOUT"
	EFAULT        Kind = "EFAULT"
	SIGBUS        Kind = "SIGBUS" // a page behind a mapping could not be had (mmap(2))

	CPUCap      Kind = "cpu cap"
	WallCap     Kind = "wall cap"
	MemoryCap   Kind = "memory cap"
	OutputCap   Kind = "output cap"
	ArtifactCap Kind = "artifact cap"
	CPULimit    Kind = "cpu limit" // RLIMIT_CPU of one process (setrlimit(2)), not the cap over the job
	Absent      Kind = "absent"    // never there, which is not refused
	Ended       Kind = "ended"     // gone with the job: nothing left to ask
	InForce     Kind = "in force"  // a setting that was read back as the profile states it
	Other       Kind = "other"     // an errno outside this list; the claim's note names it
)

// Place says which wall refused. The list is closed.
type Place string

// Places of refusal.
const (
	FileOwnership      Place = "file ownership"
	EntryPointFilter   Place = "entry-point filter"
	ScratchQuota       Place = "scratch quota"
	ScratchMount       Place = "scratch mount"
	ProcessCap         Place = "process cap"
	ProcessorCap       Place = "processor cap"
	ProcessLimit       Place = "process limit" // RLIMIT_CPU of the guest kernel, behind the processor cap
	JobMemoryCgroup    Place = "job memory cgroup"
	ReadOnlyMount      Place = "read-only mount"
	MountTable         Place = "mount table"
	RouteTable         Place = "route table"
	ProcessGroup       Place = "process group"
	WallClock          Place = "wall clock"
	OutputBound        Place = "output bound"
	ArtifactBound      Place = "artifact bound"
	Descriptors        Place = "descriptor table"
	Environment        Place = "environment"
	ProcessCredentials Place = "process credentials" // identity, capabilities, no_new_privs (credentials(7))
	OwnNamespaces      Place = "namespaces"
	RunnersOrder       Place = "runner's order" // the flags and the bundle that the runner gave the runtime
	GuestKernel        Place = "guest kernel"   // the runtime's kernel has no such act at all
	Unknown            Place = "unknown"        // the refusal came, and nothing told where
)

// Refusal is a named refusal at a named place. The zero value means that none
// was named.
type Refusal struct {
	Kind  Kind  `json:"kind"`
	Place Place `json:"place"`
}

func (r Refusal) String() string {
	if r == (Refusal{}) {
		return "no refusal"
	}
	return fmt.Sprintf("%s at the %s", r.Kind, r.Place)
}

// Lift is a wall in front that one trial lowers so that the wall behind it is
// reached. The list is closed, and the report names each lift.
type Lift string

// Lifts.
const (
	LiftFilter       Lift = "entry-point filter"          // the whole filter
	LiftSockets      Lift = "entry-point filter: sockets" // socket calls let through
	LiftFiles        Lift = "entry-point filter: files"   // link, open_by_handle_at, mknod, mount, xattr, chmod, ... let through
	LiftAnswer       Lift = "entry-point filter: answer"  // refuses the same calls by a signal instead of EPERM
	LiftProcessorCap Lift = "processor cap"               // the cap over the job
	LiftSetUID       Lift = "set-uid bits ignored"        // the runtime heeds set-user-id bits (runsc's --allow-suid)
	LiftNetwork      Lift = "no network"                  // the sandbox joins a namespace that the harness made
	LiftNeighbour    Lift = "mount table: neighbour"      // the control of step 8 is granted the neighbour's folder
)

// Verdict is the judgement of one trial. Only Held is good.
type Verdict string

// Verdicts.
const (
	Held     Verdict = "held"     // the named refusal at the named place, the host agrees, every observer involved passed its control
	Fell     Verdict = "fell"     // the effect happened
	Misnamed Verdict = "misnamed" // refused, but by another kind or at another place than the one written down
	Silent   Verdict = "silent"   // no claim where one was due, or the payload never reached the act
	Blind    Verdict = "blind"    // an observer failed its control or lost its window
	Broken   Verdict = "broken"   // the harness or the runner failed before the question was asked
)

// Outcome is the judgement of a run.
type Outcome string

// Outcomes.
const (
	Qualified Outcome = "qualified" // every trial held
	Refused   Outcome = "refused"   // any fell or misnamed
	Unproven  Outcome = "unproven"  // none of those, but some silent, blind or broken
)
