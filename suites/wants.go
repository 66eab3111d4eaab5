package suites

import (
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// The wants of the trials, each once. Bounds are bytes, packets, processes or
// nanoseconds as the unit says; -1 is filled in from the grant (see grants.go).

func none(observer, value, unit, words string) reports.Want {
	return reports.Want{
		Observer: observer, Value: value, Moment: reports.Worst, Rule: reports.Exactly, Bound: 0, Unit: unit,
		Breach: hostile.Fell, Words: words,
	}
}

func afterwards(w reports.Want) reports.Want {
	w.Moment = reports.After
	return w
}

// secretUnread: the canary's bytes are nowhere in what the job produced, and
// nobody of the job read the canary. An open alone does not count: the runtime
// opens a file when the guest only walks to it, before it looks at the guest's
// permission, so an open is what a refused attempt looks like on the host.
func secretUnread() []reports.Want {
	return []reports.Want{
		none("canary", "reads", "count", "no read of a canary by the sandbox or the gofer"),
		{
			Observer: "canary", Value: "unattributed", Moment: reports.Worst, Rule: reports.Exactly, Bound: 0, Unit: "count",
			Breach: hostile.Blind, Words: "no read of a canary by somebody whose cgroup could not be told any more",
		},
		none("secrets", "found", "count", "no secret of this run in stdout, stderr, artifacts or scratch"),
	}
}

// nothingSent: the counters of the addresses that belong to this cell alone.
func nothingSent() []reports.Want {
	return []reports.Want{
		none("egress", "packets", "packets", "no packet to the address at the host's counter"),
		none("egress", "bytes", "bytes", "no byte to the address at the host's counter"),
	}
}

// linkSilent: nothing at all left the place, to whatever address.
func linkSilent() []reports.Want {
	return []reports.Want{{
		Observer: "link", Value: "tx_packets", Moment: reports.Growth, Rule: reports.Exactly, Bound: 0, Unit: "packets",
		Breach: hostile.Fell, Words: "no frame on the place's link",
	}}
}

// diskUntouched: no real file system of the host lost space to the job.
func diskUntouched() []reports.Want {
	return []reports.Want{
		{
			Observer: "space", Value: "held", Moment: reports.Worst, Rule: reports.AtMost, Bound: heldTolerance, Unit: "bytes",
			Breach: hostile.Fell, Words: "no blocks of a real file system held by open files of the sandbox or the gofer",
		},
		none("space", "scratch", "bytes", "no blocks of a real file system behind the scratch folder"),
		// What no file of the job explains was somebody else's, and hid the
		// window.
		{
			Observer: "space", Value: "drop", Moment: reports.Worst, Rule: reports.AtMost, Bound: grantScratch, Unit: "bytes",
			Breach: hostile.Blind, Words: "free space of every real file system unchanged beyond the grant at the worst moment",
		},
	}
}

// heldTolerance is the runtime's own logs, which it holds open: their bound is
// far below the smallest file that an attempt writes.
const heldTolerance = 1 << 20

// heldByGroup: what is read at the job's cgroup counts for the job only while the
// job is in it, in every hierarchy.
func heldByGroup() []reports.Want {
	return []reports.Want{
		none("limits", "outside", "processes", "no process of the job in its cgroup by one hierarchy and elsewhere by another"),
		{
			Observer: "limits", Value: "inside", Moment: reports.Worst, Rule: reports.AtLeast, Bound: 1, Unit: "processes",
			Breach: hostile.Blind, Words: "the job's processes seen in its cgroup",
		},
	}
}

// tasksWithin: the host's cgroup of the job stays under its host cap.
func tasksWithin() []reports.Want {
	return append([]reports.Want{
		{
			Observer: "tasks", Value: "tasks", Moment: reports.Worst, Rule: reports.AtMost, Bound: grantHostTasks, Unit: "tasks",
			Breach: hostile.Fell, Words: "the job's host cgroup within its host cap",
		},
		{
			Observer: "listing", Value: "processes", Moment: reports.Worst, Rule: reports.AtMost, Bound: grantProcesses, Unit: "processes",
			Breach: hostile.Fell, Words: "the runtime's own process list never beyond the cap",
		},
	}, heldByGroup()...)
}

// processorTime: the host's accounting ends at the cap: not beyond it by more
// than the tolerance, and not before it either.
func processorTime() []reports.Want {
	return append([]reports.Want{
		{
			Observer: "processor", Value: "usage", Moment: reports.After, Rule: reports.AtMost, Bound: grantCPUTolerated, Unit: "ns",
			Breach: hostile.Fell, Words: "processor time of the job's cgroup within the cap and its tolerance",
		},
		{
			Observer: "processor", Value: "usage", Moment: reports.After, Rule: reports.AtLeast, Bound: grantCPU, Unit: "ns",
			Breach: hostile.Misnamed, Words: "the cap reached by the host's own accounting",
		},
	}, heldByGroup()...)
}

// processorBounded is for the limit behind the lifted cap: the guest kernel
// counts the process, the host the whole runtime.
func processorBounded() []reports.Want {
	return []reports.Want{{
		Observer: "processor", Value: "usage", Moment: reports.After, Rule: reports.AtMost, Bound: grantCPUTwice, Unit: "ns",
		Breach: hostile.Fell, Words: "processor time of the job's cgroup within twice the cap that was lifted",
	}}
}

// nothingDisturbed: whatever the job ate, it ate its own.
func nothingDisturbed() []reports.Want {
	return append([]reports.Want{
		{
			Observer: "oom", Value: "events", Moment: reports.After, Rule: reports.AtLeast, Bound: 1, Unit: "count",
			Breach: hostile.Misnamed, Words: "an OOM kill counted in the job's own memory cgroup",
		},
		{
			// The kernel limits how often it writes such records, so a missing
			// one is a lost window and not another refusal.
			Observer: "oom", Value: "own", Moment: reports.After, Rule: reports.AtLeast, Bound: 1, Unit: "count",
			Breach: hostile.Blind, Words: "an OOM record of the kernel that names the job's own memory cgroup",
		},
		none("oom", "foreign", "count", "no OOM record of the whole machine or of a cgroup that the job shares"),
		{
			Observer: "memory", Value: "peak", Moment: reports.Worst, Rule: reports.AtMost, Bound: grantMemoryTolerated, Unit: "bytes",
			Breach: hostile.Fell, Words: "peak usage of the job's memory cgroup within the limit and its tolerance",
		},
		none("memory", "swap", "bytes", "nothing of the job swapped out"),
		{
			Observer: "bystander", Value: "alive", Moment: reports.Worst, Rule: reports.Exactly, Bound: 1, Unit: "count",
			Breach: hostile.Fell, Words: "the bystander process alive",
		},
	}, heldByGroup()...)
}

// treesUnchanged: image and inputs byte-identical, and the gofer's mount of the
// root read-only.
func treesUnchanged() []reports.Want {
	return []reports.Want{
		afterwards(none("trees", "changed", "count", "image and input trees byte-identical before and after")),
		{
			Observer: "trees", Value: "inputs", Moment: reports.After, Rule: reports.Exactly, Bound: 1, Unit: "count",
			Breach: hostile.Blind, Words: "the job's own input tree among those compared",
		},
		none("mounts", "root_writable", "count", "the root mounted read-only in the gofer's table"),
	}
}

// inputsUnchanged: and the gofer's mount of the inputs read-only as well.
func inputsUnchanged() []reports.Want {
	return append(treesUnchanged(), none("mounts", "inputs_writable", "count", "the inputs mounted read-only in the gofer's table"))
}

// grantsOnly: what the sandbox's processes see of the host is what was granted.
func grantsOnly() []reports.Want {
	return []reports.Want{
		none("mounts", "foreign_mounts", "count", "no mount of the sandbox or the gofer beyond the job's grants"),
		none("mounts", "foreign_folders", "count", "no host folder open in the sandbox or the gofer beyond the job's grants"),
		none("secrets", "found", "count", "no secret of this run in stdout, stderr, artifacts or scratch"),
	}
}

// nothingLeft: after the result is stored, by the harness's own scan.
func nothingLeft() []reports.Want {
	return []reports.Want{
		afterwards(none("processes", "in_cgroup", "processes", "no process in the job's cgroup")),
		afterwards(none("processes", "descendants", "processes", "no process of the job's group")),
		afterwards(none("processes", "by_files", "processes", "no process of the job's container")),
		afterwards(none("residue", "scratch", "count", "the scratch folder absent")),
		afterwards(none("residue", "mounts", "count", "no mount left")),
		afterwards(none("residue", "namespaces", "count", "no network namespace left")),
		afterwards(none("residue", "links", "count", "no link left")),
		afterwards(none("residue", "cgroups", "count", "no cgroup left")),
		afterwards(none("residue", "state", "count", "no state or socket of the container left")),
		afterwards(none("residue", "nft_tables", "count", "no nft table left")),
	}
}
