package suites

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listedBeyond = "contract checks beyond the ten: every field the attestation carries must have been shown in the same run"

var (
	_ = mutate(Mutant{
		Name: "wall-clock-late", Title: "the wall clock is 3 s beyond the grant", Of: hostile.Wallclock, Part: reports.PartWall, Source: listedBeyond,
		Cells:     []string{"wallclock"},
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Wall += 3 * time.Second },
		Predicted: []Prediction{turns(hostile.Fell, "contract/wallclock/sleeper", "host: clock wall")},
	})
	_ = mutate(Mutant{
		Name: "wall-clock-early", Title: "the wall clock is half of the grant", Of: hostile.Wallclock, Part: reports.PartWall, Source: listedBeyond,
		Cells:     []string{"wallclock"},
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.Wall /= 2 },
		Predicted: []Prediction{turns(hostile.Misnamed, "contract/wallclock/sleeper", "host: clock wall")},
	})
	_ = mutate(Mutant{
		Name: "capabilities-kept", Title: "the job holds capabilities", Of: hostile.Privileges, Part: reports.PartWall, Source: listedBeyond,
		Walls: keepCapabilities,
		Took: func(rep *reports.Report) string {
			if !effective(rep) {
				return "this runtime has no ambient capabilities, so that they are not effective for anybody but root: capabilities-inert asks what is left"
			}
			return ""
		},
		Predicted: stolen(
			// CAP_SYS_ADMIN is exempt from RLIMIT_NPROC (getrlimit(2)).
			turns(hostile.Fell, "step-04/processes/*"),
			turns(hostile.Misnamed, "step-07/outside/mknod", "inside: EROFS at the read-only mount"),
			turns(hostile.Fell, "step-07/outside/remount", "inside"),
			turns(hostile.Fell, "step-07/outside/inputs-remount", "inside"),
			turns(hostile.Fell, "step-07/outside/mount-over", "inside"),
			turns(hostile.Fell, "step-07/outside/proc-sys", "inside"),
			turns(hostile.Misnamed, "step-07/outside/xattr", "inside: EROFS at the unknown"),
			turns(hostile.Fell, "step-07/outside/pseudo", "inside"),
			turns(hostile.Fell, "contract/identity/setuid", "inside"),
			turns(hostile.Fell, "contract/privileges/capabilities", "inside"),
		),
	})
	_ = mutate(Mutant{
		Name: "capabilities-inert", Title: "the job may inherit capabilities, and holds none", Of: hostile.Privileges, Part: reports.PartWall, Source: listedBeyond,
		Cells: []string{"outside"},
		Walls: keepCapabilities,
		Took: func(rep *reports.Report) string {
			if effective(rep) {
				return "in this runtime they are effective: capabilities-kept asks more"
			}
			return ""
		},
		Predicted: []Prediction{turns(hostile.Fell, "contract/privileges/capabilities", "inside")},
	})
	_ = mutate(Mutant{
		Name: "new-privileges", Title: "no_new_privs is not set", Of: hostile.Privileges, Part: reports.PartWall, Source: listedBeyond,
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.NewPrivileges = true },
		Predicted: []Prediction{turns(hostile.Fell, "contract/privileges/no-new-privs", "inside")},
	})
	_ = mutate(Mutant{
		Name: "host-tasks-unlimited", Title: "the job's cgroup has no pids.max", Of: hostile.Granted, Part: reports.PartWall, Source: "memory, swap and host pids in a cgroup",
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.HostTasks = 0 },
		Predicted: []Prediction{turns(hostile.Fell, "contract/limits/tasks", "host: limits tasks")},
	})
	_ = mutate(Mutant{
		Name: "limit-left", Title: "the runtime leaves the job's cgroup in the hierarchy that limits tasks", Of: hostile.Granted, Part: reports.PartWall, Source: "memory, swap and host pids in a cgroup",
		Cells: []string{"outside", "processes", "processor-threads", "memory-anonymous"},
		Need:  perController,
		Begun: func(t runsc.Traces) error {
			return os.WriteFile("/sys/fs/cgroup/pids/cgroup.procs", []byte(strconv.Itoa(t.PID)), 0)
		},
		Predicted: []Prediction{
			turns(hostile.Fell, "contract/limits/*", "host: limits outside"),
			turns(hostile.Fell, "step-04/processes/*", "host: limits outside"),
			turns(hostile.Fell, "step-05/processor/*", "host: limits outside"),
			turns(hostile.Fell, "step-06/memory/*", "host: limits outside"),
		},
	})
	_ = mutate(Mutant{
		Name: "boot-flag", Title: "the runtime is started with one flag more than the runner ordered", Of: hostile.Boot, Part: reports.PartWall, Source: listedBeyond,
		Cells:     []string{"outside"},
		Walls:     func(_ *Scene, _ *Cell, w *runsc.Walls) { w.UnsaidFlags = []string{"--host-fifo=open"} },
		Predicted: []Prediction{turns(hostile.Fell, "contract/boot/flags", "host: boot flags")},
	})
	_ = mutate(Mutant{
		Name: "boot-hook", Title: "the bundle has a hook that the runner did not write", Of: hostile.Boot, Part: reports.PartWall, Source: listedBeyond,
		Cells: []string{"outside"},
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) {
			w.UnsaidSpec = func(s *specs.Spec) { s.Hooks = &specs.Hooks{Poststop: []specs.Hook{{Path: "/bin/true"}}} }
		},
		Predicted: []Prediction{turns(hostile.Fell, "contract/boot/container", "host: boot container")},
	})
	_ = mutate(Mutant{
		Name: "entry-point-added", Title: "the filter lets one more call through", Of: hostile.Census, Part: reports.PartWall, Source: listedBeyond,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) {
			if w.Filter != nil {
				w.Filter = w.Filter.With("personality")
			}
		},
		Predicted: []Prediction{turns(hostile.Fell, "contract/census/all", "host: census beyond")},
	})
	_ = mutate(Mutant{
		Name: "entry-point-taken", Title: "the filter refuses one more call", Of: hostile.Census, Part: reports.PartWall, Source: listedBeyond,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) {
			if w.Filter != nil {
				w.Filter = w.Filter.With()
				w.Filter.Allow = slices.DeleteFunc(w.Filter.Allow, func(name string) bool { return name == "getcwd" })
			}
		},
		Predicted: []Prediction{turns(hostile.Misnamed, "contract/census/all", "host: census missing")},
	})
	_ = mutate(Mutant{
		Name: "namespace-joined-network", Title: "the job joins the network namespace that the runner starts it in", Of: hostile.Namespaces, Part: reports.PartWall, Source: listedBeyond,
		Walls: joinPlace("outside"),
		Predicted: []Prediction{
			turns(hostile.Fell, "contract/namespaces/own-five", "host: namespaces net"),
			turns(hostile.Fell, "contract/namespaces/inside", "inside", "host: namespaces net"),
		},
	})
	_ = shareNamespace("pid")
	_ = shareNamespace("mount")
	_ = shareNamespace("ipc")
	_ = shareNamespace("uts")
)

// perController is the need of cgroup version 1, in which a process can leave one
// limit alone.
func perController(runsc.Config) string {
	if h, err := cgroup.Detect("/sys/fs/cgroup"); err == nil && h.Version() != 1 {
		return "cgroup version 2 has one hierarchy for all limits"
	}
	return ""
}

func keepCapabilities(_ *Scene, _ *Cell, w *runsc.Walls) {
	w.Capabilities = []string{"CAP_DAC_OVERRIDE", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETUID", "CAP_SYS_ADMIN"}
}

// effective tells whether the payload read an effective set that is not empty.
func effective(rep *reports.Report) bool {
	for _, t := range rep.Trials {
		if t.Attempt != hostile.Privileges.Name || t.Route != "capabilities" || t.Claim == nil {
			continue
		}
		_, rest, ok := strings.Cut(t.Claim.Note, "CapEff ")
		return ok && strings.Trim(strings.SplitN(rest, ";", 2)[0], "0") != ""
	}
	return false
}

// shareNamespace lets the job join the harness's own. Newer runtimes make these
// whatever the bundle says; then there is no wall to lower.
func shareNamespace(name string) struct{} {
	file := cmp.Or(map[string]string{"mount": "mnt"}[name], name)
	return mutate(Mutant{
		Name: "namespace-shared-" + name, Title: "the job joins the harness's own " + name + " namespace", Of: hostile.Namespaces, Part: reports.PartWall, Source: listedBeyond,
		Cells: []string{"outside"},
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) {
			w.Shared = map[string]string{name: fmt.Sprintf("/proc/%d/ns/%s", os.Getpid(), file)}
		},
		Took: func(rep *reports.Report) string {
			if rep.InForce["sandbox process: "+file+" namespace"] == "its own" {
				return "the runtime made the sandbox a " + name + " namespace of its own, whatever the bundle says: read back from the running sandbox"
			}
			return ""
		},
		Predicted: []Prediction{turns(hostile.Fell, "contract/namespaces/*", "host: namespaces "+file)},
	})
}
