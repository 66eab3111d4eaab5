package suites

import (
	"net/netip"
	"slices"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

const source2 = "step 2: refused at the entry point, and zero bytes at the host counter"

func connection(route string) Trial {
	return Trial{
		Attempt: hostile.Connection, Route: route, Expected: filterRefuses, By: reports.ByClaim, Source: source2,
		Wants: slices.Concat(nothingSent(), linkSilent()),
	}
}

var _ = place(
	Cell{Name: "connection", Cost: 300 * time.Millisecond, Params: internet},
	connection("tcp4"), connection("tcp6"), connection("udp"), connection("dns"), connection("icmp"), connection("raw"),
	connection("packet"), connection("vsock"), connection("unix-abstract"), connection("unix-path"), connection("netlink"),
	connection("io-uring"),
	Trial{
		Attempt: hostile.Connection, Route: "inherited-descriptor", By: reports.ByClaim,
		Expected: hostile.Refusal{Kind: hostile.Absent, Place: hostile.Descriptors},
		Source:   "step 2: nothing left by any other route: no socket of the host is open in the job",
		Wants:    slices.Concat(nothingSent(), linkSilent()),
	},
)

// internet are addresses that are used for nothing else in the run.
func internet(s *Scene) map[string]string {
	v4, v6 := s.Destination("connection")
	return map[string]string{
		"addr4": netip.AddrPortFrom(v4, 443).String(), "addr6": netip.AddrPortFrom(v6, 443).String(),
		"resolver":      netip.AddrPortFrom(v4, 53).String(),
		"unix_abstract": s.AbstractSocket, "unix_path": s.SocketPath,
	}
}
