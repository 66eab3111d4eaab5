package hostile

import "slices"

var kinds = []Kind{
	EACCES, EPERM, SIGSYS, ENOSPC, EAGAIN, ENOMEM, EROFS, EXDEV, ENOENT, EBADF, ENOTDIR, EINVAL, EBUSY, EIO,
	ELOOP, EMFILE, ENOSYS, ENODEV, EOPNOTSUPP, EAFNOSUPPORT, ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL,
	ECONNREFUSED, ETIMEDOUT, EFAULT, SIGBUS, CPUCap, WallCap, MemoryCap, OutputCap, ArtifactCap, CPULimit, Absent,
	Ended, InForce, Other,
}

var places = []Place{
	FileOwnership, EntryPointFilter, ScratchQuota, ScratchMount, ProcessCap, ProcessorCap, ProcessLimit,
	JobMemoryCgroup, ReadOnlyMount, MountTable, RouteTable, ProcessGroup, WallClock, OutputBound,
	ArtifactBound, Descriptors, Environment, ProcessCredentials, OwnNamespaces, RunnersOrder, GuestKernel, Unknown,
}

// Kinds returns every kind, in a fixed order.
func Kinds() []Kind { return slices.Clone(kinds) }

// Places returns every place, in a fixed order.
func Places() []Place { return slices.Clone(places) }

func knownKind(k Kind) bool   { return slices.Contains(kinds, k) }
func knownPlace(p Place) bool { return slices.Contains(places, p) }
