package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/runsc"
)

var _ = place(
	Cell{Name: "wallclock", Cost: 150 * time.Millisecond, Params: wallCap},
	Trial{
		Attempt: hostile.Wallclock, Route: "sleeper", Expected: endings["wall"], By: reports.ByRunner,
		Source: "10 s of wall clock; a sleeper ends at 10 s, recorded against the wall clock",
		Wants: []reports.Want{
			{Observer: "clock", Value: "wall", Moment: reports.After, Rule: reports.AtLeast, Bound: grantWall, Unit: "ns", Breach: hostile.Misnamed, Words: "the job lived for as long as it was granted"},
			{Observer: "clock", Value: "wall", Moment: reports.After, Rule: reports.AtMost, Bound: grantWallTolerated, Unit: "ns", Breach: hostile.Fell, Words: "the job ended at the wall clock, within its tolerance"},
		},
	})

var _ = place(
	Cell{Name: "output", Cost: 300 * time.Millisecond, Params: scratchSize},
	flood(hostile.Output, "both-streams", "OutputBytes bounds combined stdout and stderr"))

const artifactBytes = 4096

func artifact(route string, expected hostile.Refusal, captured int64) Trial {
	return Trial{
		Attempt: hostile.Artifacts, Route: route, Expected: expected, By: reports.ByRunner,
		Source: "outputs are regular files under scratch, links and folders refused, archives never opened",
		Wants: []reports.Want{
			{Observer: "output", Value: "artifacts", Moment: reports.After, Rule: reports.AtMost, Bound: captured, Unit: "count", Breach: hostile.Fell, Words: "only an honest file captured"},
			{Observer: "output", Value: "artifacts", Moment: reports.After, Rule: reports.AtLeast, Bound: captured, Unit: "count", Breach: hostile.Misnamed, Words: "the honest file captured"},
			none("secrets", "found", "count", "no secret of this run in stdout, stderr, artifacts or scratch"),
		},
	}
}

func declared(paths ...string) []sandbox.Output {
	var out []sandbox.Output
	for _, p := range paths {
		out = append(out, sandbox.Output{ID: id.New("art"), Path: p, MediaType: "text/plain", MaxBytes: artifactBytes})
	}
	return out
}

var _ = place(
	Cell{
		Name: "artifacts-honest", Cost: 150 * time.Millisecond, Outputs: declared("honest.txt"),
		Params: func(*Scene) map[string]string { return map[string]string{"honest_path": "honest.txt"} },
	},
	artifact("honest", hostile.Refusal{Kind: hostile.InForce, Place: hostile.ArtifactBound}, 1))

// The lift lets a named pipe be made. None of the four may be captured, so they can be offered side by side: one
// that is shows in the count.
var _ = place(
	Cell{
		Name: "artifacts", Lifts: []hostile.Lift{hostile.LiftFiles}, Change: liftFiles, Cost: 150 * time.Millisecond, Outputs: declared("link.txt", "folder", "pipe", "linked/file.txt"),
		Params: func(*Scene) map[string]string {
			return map[string]string{"symlink_path": "link.txt", "folder_path": "folder", "fifo_path": "pipe", "parent_path": "linked/file.txt"}
		},
	},
	artifact("symlink", endings["artifact"], 0), artifact("folder", endings["artifact"], 0),
	artifact("fifo", endings["artifact"], 0), artifact("parent-symlink", endings["artifact"], 0))

func inForce(a *hostile.Attempt, route string, where hostile.Place, source string, wants ...reports.Want) Trial {
	return Trial{
		Attempt: a, Route: route, Expected: hostile.Refusal{Kind: hostile.InForce, Place: where}, By: reports.ByClaim,
		Source: source, Wants: wants,
	}
}

// In the cell of step 7, whose observers these need as well.
func init() {
	beside("outside", inForce(hostile.Identity, "nobody", hostile.ProcessCredentials, "runs as nobody, owning nothing: uid and gid 65534"))
	beside("outside", inForce(hostile.Privileges, "capabilities", hostile.ProcessCredentials, "no capabilities"))
	beside("behind-files", inForce(hostile.Privileges, "no-new-privs", hostile.ProcessCredentials, "no new privileges: execve(2); the image's mount is not nosuid, but the runtime ignores set-user-id bits by itself, so the program shows the effect and the setting names the wall"))
	beside("outside", userNamespace("user-namespace", "user_namespaces(7): every capability in it to whoever makes it: clone with a namespace's flag is refused at the filter, which lets other clones through"))
	beside("outside", userNamespace("user-namespace-unshare", "user_namespaces(7): every capability in it to whoever makes it: unshare is not among the entry points let through"))
	beside("outside", inForce(hostile.Namespaces, "inside", hostile.OwnNamespaces, "own PID, mount, network, IPC and UTS namespaces", ownNamespaces()...))
	beside("outside", Trial{
		Attempt: hostile.Namespaces, Route: "own-five", By: reports.ByHost, Source: "own PID, mount, network, IPC and UTS namespaces",
		Expected: hostile.Refusal{Kind: hostile.InForce, Place: hostile.OwnNamespaces}, Wants: ownNamespaces(),
	})
}

func limited(route string, where hostile.Place, bound int64, unit, words string) Trial {
	return Trial{
		Attempt: hostile.Granted, Route: route, By: reports.ByHost, Expected: hostile.Refusal{Kind: hostile.InForce, Place: where},
		Source: "memory, swap and host pids in a cgroup",
		Wants: append([]reports.Want{{
			Observer: "limits", Value: route, Moment: reports.Worst, Rule: reports.AtMost, Bound: bound, Unit: unit,
			Breach: hostile.Fell, Words: words,
		}}, heldByGroup()...),
	}
}

// In the cell of step 7, which is without lifts and long enough to be looked at.
func init() {
	beside("outside", limited("memory", hostile.JobMemoryCgroup, grantMemory, "bytes", "memory of the job's cgroup limited to the grant"))
	beside("outside", limited("swap", hostile.JobMemoryCgroup, grantSwap, "bytes", "swap of the job's cgroup limited as configured"))
	beside("outside", limited("tasks", hostile.ProcessCap, grantHostTasks, "tasks", "tasks of the job's cgroup limited as configured"))
}

func booted(route, seen, value, words string) Trial {
	return Trial{
		Attempt: hostile.Boot, Route: route, By: reports.ByHost, Expected: hostile.Refusal{Kind: hostile.InForce, Place: hostile.RunnersOrder},
		Source: "a line of configuration is believed until somebody observes it: the sandbox that runs is the one that was ordered",
		Wants: []reports.Want{
			none("boot", value, "count", words),
			{
				Observer: "boot", Value: seen, Moment: reports.Worst, Rule: reports.AtLeast, Bound: 1, Unit: "count",
				Breach: hostile.Blind, Words: "what the runtime runs with was read",
			},
		},
	}
}

func init() {
	beside("outside", booted("flags", "processes", "flags", "no flag of the runtime otherwise than ordered"))
	beside("outside", booted("container", "containers", "container", "no field of the container's configuration otherwise than ordered"))
}

func userNamespace(route, source string) Trial {
	return Trial{Attempt: hostile.Privileges, Route: route, Expected: filterRefuses, By: reports.ByClaim, Source: source}
}

// setUIDPath is where the set-uid program is in the job's image.
const setUIDPath = "/tenwalls/suid"

func setUIDParams(*Scene) map[string]string { return map[string]string{"suid": setUIDPath} }

var _ = place(
	Cell{Name: "behind-set-uid", Lifts: []hostile.Lift{hostile.LiftFiles, hostile.LiftSetUID}, Change: func(w *runsc.Walls) { liftFiles(w); liftSetUID(w) }, Cost: 100 * time.Millisecond, Params: setUIDParams},
	inForce(hostile.Privileges, "set-uid-behind", hostile.ProcessCredentials, "no new privileges: execve(2): with no_new_privs set-user-id bits are ignored; the image's mount is not nosuid"))

// Behind the filter, in the cell of step 1 that lifts the same rule.
func init() {
	beside("behind-files", Trial{
		Attempt: hostile.Identity, Route: "setuid", By: reports.ByClaim, Source: "setuid(2): EPERM without CAP_SETUID",
		Expected: hostile.Refusal{Kind: hostile.EPERM, Place: hostile.ProcessCredentials},
	})
}

var _ = place(
	Cell{Name: "census", Cost: 700 * time.Millisecond},
	inForce(hostile.Census, "all", hostile.EntryPointFilter, "about 60 of about 350 entry points allowed: exactly those of the allow list", censusWants()...))

var _ = place(
	Cell{Name: "census-by-signal", Lifts: []hostile.Lift{hostile.LiftAnswer}, Change: answerBySignal, Cost: 250 * time.Millisecond},
	inForce(hostile.Census, bySignal, hostile.EntryPointFilter, "about 60 of about 350 entry points allowed: the same allow list, refusing by a signal, which the kernel sends nobody for want of a capability (seccomp(2), SECCOMP_RET_TRAP)", censusBySignalWants()...))

func ownNamespaces() []reports.Want {
	var out []reports.Want
	for _, ns := range []string{"pid", "mnt", "net", "ipc", "uts"} {
		out = append(out, none("namespaces", ns, "count", "the sandbox in no "+ns+" namespace of the harness"))
	}
	return out
}

func wallCap(s *Scene) map[string]string {
	return map[string]string{"wall_ms": text(s.Limits().WallTime.Milliseconds())}
}
