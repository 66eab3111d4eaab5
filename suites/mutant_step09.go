package suites

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

const listed9 = "step 9, mutants: a route to it, dropped instead of unroutable, only the internet refused"

var (
	_ = mutate(Mutant{
		Name: "metadata-route", Title: "the sandbox has a route to everything", Of: hostile.Metadata, Part: reports.PartWall, Source: listed9,
		Answer: true,
		Walls:  joinPlace("metadata"),
		Predicted: []Prediction{
			turns(hostile.Fell, "step-09/metadata/*", "inside", "host: egress packets", "host: link tx_packets", "host: routes routes"),
		},
	})
	_ = mutate(Mutant{
		Name: "metadata-dropped", Title: "the sandbox has a route, and what it sends is dropped before it leaves", Of: hostile.Metadata, Part: reports.PartWall, Source: listed9,
		// A table in the place is what step 10 looks for, so that is not asked.
		Cells: []string{"connection", "metadata"},
		Walls: func(s *Scene, c *Cell, w *runsc.Walls) {
			if c.Name == "metadata" && s.world.InPlace(func() error { return dropAll(s.world.PlaceLink()) }) == nil {
				joinPlace("metadata")(s, c, w)
			}
		},
		Predicted: []Prediction{
			turns(hostile.Misnamed, "step-09/metadata/*", "host: routes routes"),
		},
	})
	_ = mutate(Mutant{
		Name: "metadata-overlooked", Title: "the sandbox has no route to the internet, but one to the metadata addresses", Of: hostile.Metadata, Part: reports.PartWall, Source: listed9,
		Answer: true,
		Walls: func(s *Scene, c *Cell, w *runsc.Walls) {
			if c.Name == "metadata" && s.world.InPlace(func() error { return routeOnly(s.world.PlaceLink(), fixtures.MetadataAddresses()) }) == nil {
				joinPlace("metadata")(s, c, w)
			}
		},
		Predicted: []Prediction{
			turns(hostile.Fell, "step-09/metadata/*", "inside", "host: egress packets", "host: link tx_packets"),
			// These two go to a resolver and a proxy on the internet first. The host
			// counts for the job.
			turns(hostile.Fell, "step-09/metadata/by-name", "host: egress packets"),
			turns(hostile.Fell, "step-09/metadata/proxy", "host: egress packets"),
		},
	})
)

// dropAll drops what leaves over the link, from the calling thread's network
// namespace (nft(8), netdev family, egress hook: Linux 5.16). The counters stand
// at the far end, behind it.
func dropAll(link string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("drop over %s: %w", link, err)
	}
	table := conn.AddTable(&nftables.Table{Name: "tenwalls_mutant", Family: nftables.TableFamilyNetdev})
	chain := conn.AddChain(&nftables.Chain{
		Name: "drop", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookEgress,
		Priority: nftables.ChainPriorityFilter, Device: link,
	})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("drop over %s: %w", link, err)
	}
	return nil
}

// routeOnly replaces the default routes over the link by routes to the
// addresses, in the calling thread's network namespace.
func routeOnly(name string, addresses []netip.Addr) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("route over %s: %w", name, err)
	}
	var errs []error
	gateways := map[int]net.IP{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteList(link, family)
		errs = append(errs, err)
		for _, r := range routes {
			if r.Gw == nil {
				continue
			}
			gateways[family] = r.Gw
			errs = append(errs, netlink.RouteDel(&r))
		}
	}
	for _, a := range addresses {
		family := unix.AF_INET
		if a.Is6() {
			family = unix.AF_INET6
		}
		errs = append(errs, netlink.RouteAdd(&netlink.Route{
			LinkIndex: link.Attrs().Index, Gw: gateways[family],
			Dst: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())},
		}))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("route over %s: %w", name, err)
	}
	return nil
}
