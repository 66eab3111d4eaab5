package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

const source1 = "step 1: refused on ownership, nothing read: an ownership refusal, not an absence"

var ownership = hostile.Refusal{Kind: hostile.EACCES, Place: hostile.FileOwnership}

func credential(route string, expected hostile.Refusal, source string) Trial {
	return Trial{Attempt: hostile.Credentials, Route: route, Expected: expected, By: reports.ByClaim, Source: source, Wants: secretUnread()}
}

var _ = place(
	Cell{Name: "credentials", Cost: 200 * time.Millisecond, Env: declaredEnv, Params: declaredNames},
	credential("shadow", ownership, source1),
	credential("ssh-key", ownership, source1),
	credential("service-account", ownership, source1),
	credential("cloud-credentials", ownership, source1),
	credential("symlink", ownership, source1),
	credential("proc-root", ownership, source1),
	credential("hard-link", filterRefuses, sourceFilter),
	credential("file-handle", filterRefuses, sourceFilter),
	credential("init-environ", hostile.Refusal{Kind: hostile.Absent, Place: hostile.Environment},
		"step 1: the runner's own environment: the job's environment holds only what the job declared"),
	credential("environment", hostile.Refusal{Kind: hostile.Absent, Place: hostile.Environment},
		"step 1: the runner's own environment: the job's environment holds only what the job declared"),
	credential("inherited-descriptor", hostile.Refusal{Kind: hostile.Absent, Place: hostile.Descriptors},
		"step 1: inherited file descriptors: nothing of the host is open in the job"),
)

var _ = place(
	Cell{
		Name: "behind-files", Lifts: []hostile.Lift{hostile.LiftFiles}, Change: liftFiles, Cost: 250 * time.Millisecond,
		Inputs: outsideInputs(), Params: outsideParams, // for the routes of step 7 that stand beside
	},
	credential("hard-link-behind", hostile.Refusal{Kind: hostile.EXDEV, Place: hostile.ScratchMount},
		"step 1: a hard link from scratch; link(2): EXDEV, scratch and image are different mounts"),
	credential("file-handle-behind", hostile.Refusal{Kind: hostile.EOPNOTSUPP, Place: hostile.GuestKernel},
		"step 1: open_by_handle_at; the runtime's kernel has no such call"),
)

// declaredEnv is what the credentials job declares; anything else inside came
// from somewhere else.
var declaredEnv = map[string]string{"TENWALLS_DECLARED": "yes"}

func declaredNames(*Scene) map[string]string { return map[string]string{"env": "TENWALLS_DECLARED"} }
