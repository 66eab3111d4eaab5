package suites

import (
	"slices"
	"strings"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed2 = "step 2, mutants: filter not loaded without a route, filter not loaded and a route, counter not installed"

func unloadFilter(_ *Scene, _ *Cell, w *runsc.Walls) { w.Filter = nil }

// joinPlace lets the sandbox of one cell take over the place's link, with its
// addresses and its routes. There is only one to take.
func joinPlace(cell string) func(*Scene, *Cell, *runsc.Walls) {
	return func(s *Scene, c *Cell, w *runsc.Walls) {
		if c.Name == cell {
			w.Network, w.NetNS = "sandbox", s.world.PlacePath()
		}
	}
}

func withoutConnection(in []Prediction) []Prediction {
	return slices.DeleteFunc(in, func(p Prediction) bool { return strings.HasPrefix(p.Trials, "step-02/") })
}

// unfiltered is what the wall behind the filter says, where there is one.
func unfiltered() []Prediction {
	return []Prediction{
		turns(hostile.Misnamed, "step-01/credentials/hard-link", "inside: EXDEV at the scratch mount"),
		turns(hostile.Misnamed, "step-01/credentials/file-handle", "inside: EOPNOTSUPP at the guest kernel"),
		turns(hostile.Misnamed, "step-02/connection/*", "inside: ENETUNREACH at the route table"),
		turns(hostile.Misnamed, "step-02/connection/raw", "inside: EPERM at the process credentials"),
		turns(hostile.Misnamed, "step-02/connection/packet", "inside: EPERM at the process credentials"),
		turns(hostile.Misnamed, "step-02/connection/vsock", "inside: EAFNOSUPPORT at the guest kernel"),
		turns(hostile.Misnamed, "step-02/connection/unix-*", "inside: ECONNREFUSED at the namespaces"),
		turns(hostile.Misnamed, "step-02/connection/io-uring", "inside: ENOSYS at the guest kernel"),
		turns(hostile.Fell, "step-02/connection/netlink", "inside"), // no other wall stands there
		stays("step-02/connection/inherited-descriptor"),
		turns(hostile.Fell, "contract/census/all", "inside", "host: census beyond"),
		turns(hostile.Fell, "contract/privileges/user-namespace*", "inside"),
	}
}

var (
	_ = mutate(Mutant{
		Name: "filter-unloaded", Title: "no entry-point filter is loaded, and no route stands behind it", Of: hostile.Connection, Part: reports.PartWall, Source: listed2,
		Walls:     unloadFilter,
		Predicted: unfiltered(),
	})
	_ = mutate(Mutant{
		Name: "filter-unloaded-and-route", Title: "no entry-point filter is loaded, and the sandbox has a route", Of: hostile.Connection, Part: reports.PartWall, Source: listed2,
		Answer: true,
		Walls: func(s *Scene, c *Cell, w *runsc.Walls) {
			unloadFilter(s, c, w)
			joinPlace("connection")(s, c, w)
		},
		// The host counts for the job: what no route let out turns as well.
		Predicted: append(withoutConnection(unfiltered()),
			turns(hostile.Fell, "step-02/connection/*", "host: egress packets", "host: egress bytes", "host: link tx_packets"),
			turns(hostile.Fell, "step-02/connection/tcp?", "inside", "host: egress packets"),
			turns(hostile.Fell, "step-02/connection/udp", "inside", "host: egress packets"),
			turns(hostile.Fell, "step-02/connection/dns", "inside", "host: egress packets"),
			turns(hostile.Fell, "step-02/connection/icmp", "inside", "host: egress packets"),
		),
	})
	_ = mutate(Mutant{
		Name: "filter-traps", Title: "the filter sends SIGSYS where the profile says EPERM", Of: hostile.Connection, Part: reports.PartWall,
		Source: "step 2: the profile says which, and the wrong one is misnamed",
		Need:   errnoAction,
		Walls: func(_ *Scene, _ *Cell, w *runsc.Walls) {
			if w.Filter == nil {
				return
			}
			w.Filter = w.Filter.With()
			w.Filter.Action = "TRAP"
		},
		Predicted: []Prediction{
			turns(hostile.Misnamed, "step-01/credentials/hard-link", "inside: SIGSYS at the entry-point filter"),
			turns(hostile.Misnamed, "step-01/credentials/file-handle", "inside: SIGSYS at the entry-point filter"),
			turns(hostile.Misnamed, "step-02/connection/*", "inside: SIGSYS at the entry-point filter"),
			stays("step-02/connection/inherited-descriptor"),
			turns(hostile.Misnamed, "contract/privileges/user-namespace*", "inside: SIGSYS at the entry-point filter"),
		},
	})
	_ = mutate(Mutant{
		Name: "counter-not-installed", Title: "the table of the egress counters is gone", Of: hostile.Connection, Part: reports.PartObserver, Source: listed2,
		Cells: []string{"connection", "metadata"}, Answer: true, // nothing to drop with
		Eyes: func(_ *Scene, e *eyes) error {
			if o, ok := e.all["egress"].(*observers.Egress); ok {
				return o.Close()
			}
			return nil
		},
		Predicted: []Prediction{
			turns(hostile.Blind, "step-02/connection/*", "control: egress"),
			turns(hostile.Blind, "step-09/metadata/*", "control: egress"),
		},
	})
)

// errnoAction is the need of the mutant that answers by another action.
func errnoAction(cfg runsc.Config) string {
	if cfg.EntryPoints.Action != "ERRNO" {
		return "the configured action is " + cfg.EntryPoints.Action + ", which sends a signal itself"
	}
	return ""
}
