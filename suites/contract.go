package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

const sourceContract = "every field that the attestation carries must have been shown in the same run"

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

func artifact(name string) *Cell {
	path := name + ".txt"
	out := []sandbox.Output{{ID: id.New("art"), Path: path, MediaType: "text/plain", MaxBytes: artifactBytes}}
	if name == "parent-symlink" {
		out[0].Path = "linked/" + path
	}
	expected := endings["artifact"]
	if name == "honest" {
		expected = hostile.Refusal{Kind: hostile.InForce, Place: hostile.ArtifactBound}
	}
	captured, param := int64(0), name
	if name == "parent-symlink" {
		param = "parent"
	}
	if name == "honest" {
		captured = 1
	}
	return place(
		Cell{
			Name: "artifacts-" + name, Cost: 150 * time.Millisecond, Outputs: out,
			Params: func(*Scene) map[string]string {
				return map[string]string{param + "_path": out[0].Path, "artifact_bytes": text(artifactBytes)}
			},
		},
		Trial{
			Attempt: hostile.Artifacts, Route: name, Expected: expected, By: reports.ByRunner,
			Source: "outputs are regular files under scratch, links and folders refused, archives never opened",
			Wants: []reports.Want{
				{Observer: "output", Value: "artifacts", Moment: reports.After, Rule: reports.Exactly, Bound: captured, Unit: "count", Breach: hostile.Fell, Words: "only the honest file captured"},
				none("secrets", "found", "count", "no secret of this run in stdout, stderr, artifacts or scratch"),
			},
		})
}

var (
	_ = artifact("honest")
	_ = artifact("symlink")
	_ = artifact("folder")
	_ = artifact("fifo")
	_ = artifact("parent-symlink")
)

func inForce(a *hostile.Attempt, route string, where hostile.Place, source string, wants ...reports.Want) Trial {
	return Trial{
		Attempt: a, Route: route, Expected: hostile.Refusal{Kind: hostile.InForce, Place: where}, By: reports.ByClaim,
		Source: source, Wants: wants,
	}
}

var _ = place(
	Cell{Name: "self", Cost: 200 * time.Millisecond},
	inForce(hostile.Identity, "nobody", hostile.ProcessCredentials, "runs as nobody, owning nothing: uid and gid 65534"),
	inForce(hostile.Privileges, "capabilities", hostile.ProcessCredentials, "no capabilities"),
	inForce(hostile.Privileges, "no-new-privs", hostile.ProcessCredentials, "no new privileges"),
	inForce(hostile.Namespaces, "inside", hostile.OwnNamespaces, "own PID, mount, network, IPC and UTS namespaces", ownNamespaces()...),
	Trial{
		Attempt: hostile.Namespaces, Route: "own-five", By: reports.ByHost, Source: "own PID, mount, network, IPC and UTS namespaces",
		Expected: hostile.Refusal{Kind: hostile.InForce, Place: hostile.OwnNamespaces}, Wants: ownNamespaces(),
	},
)

var _ = place(
	Cell{Name: "self-behind", Lifts: []hostile.Lift{hostile.LiftFiles}, Change: liftFiles, Cost: 150 * time.Millisecond},
	Trial{
		Attempt: hostile.Identity, Route: "setuid", By: reports.ByClaim, Source: "setuid(2): EPERM without CAP_SETUID",
		Expected: hostile.Refusal{Kind: hostile.EPERM, Place: hostile.ProcessCredentials},
	})

var _ = place(
	Cell{Name: "census", Cost: 700 * time.Millisecond},
	inForce(hostile.Census, "all", hostile.EntryPointFilter, "about 60 of about 350 entry points allowed: exactly those of the allow list", censusWants()...))

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
