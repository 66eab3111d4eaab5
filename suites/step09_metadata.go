package suites

import (
	"net/netip"
	"slices"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

func metadata(route string) Trial {
	return Trial{
		Attempt: hostile.Metadata, Route: route, By: reports.ByClaim,
		Expected: hostile.Refusal{Kind: hostile.ENETUNREACH, Place: hostile.RouteTable},
		Source:   "step 9: no route, and zero bytes at the host counter",
		Wants: slices.Concat(nothingSent(), linkSilent(), []reports.Want{
			// A route alone lets nothing out: where it stands, another wall answered.
			{
				Observer: "routes", Value: "routes", Moment: reports.Worst, Rule: reports.Exactly, Bound: 0, Unit: "count",
				Breach: hostile.Misnamed, Words: "no route in the sandbox's network namespace",
			},
		}),
	}
}

var _ = place(
	Cell{Name: "metadata", Lifts: []hostile.Lift{hostile.LiftSockets}, Change: liftSockets, Cost: 200 * time.Millisecond, Params: clouds},
	metadata("aws"), metadata("aws-ipv6"), metadata("mapped"), metadata("ecs"), metadata("alibaba"), metadata("azure"),
	metadata("oracle"), metadata("by-name"), metadata("proxy"),
)

func clouds(s *Scene) map[string]string {
	v4, _ := s.Destination("metadata")
	return map[string]string{
		"resolver": netip.AddrPortFrom(v4, 53).String(), "proxy": netip.AddrPortFrom(v4, 80).String(),
	}
}
