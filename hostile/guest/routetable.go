package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/bits"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// hop is one entry of the guest's route table.
type hop struct {
	to   netip.Prefix
	link string
}

// ownRoutes reads the guest's route tables of both families (proc_net_route(5)).
func ownRoutes() ([]hop, error) {
	var all []hop
	for name, parse := range map[string]func(io.Reader) ([]hop, error){
		"/proc/net/route": parseRoutes4, "/proc/net/ipv6_route": parseRoutes6,
	} {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read own route table: %w", err)
		}
		routes, err := parse(f)
		f.Close() //nolint:errcheck,gosec // read only
		if err != nil {
			return nil, fmt.Errorf("read own route table %s: %w", name, err)
		}
		all = append(all, routes...)
	}
	return all, nil
}

// parseRoutes4 reads /proc/net/route: link, destination and, as the eighth
// field, mask. Both are the four bytes of the address in the machine's order.
func parseRoutes4(r io.Reader) ([]hop, error) {
	var out []hop
	sc := bufio.NewScanner(r)
	for first := true; sc.Scan(); first = false {
		f := strings.Fields(sc.Text())
		if first || len(f) < 8 {
			continue
		}
		to, err := strconv.ParseUint(f[1], 16, 32)
		if err != nil {
			return nil, fmt.Errorf("destination %q: %w", f[1], err)
		}
		mask, err := strconv.ParseUint(f[7], 16, 32)
		if err != nil {
			return nil, fmt.Errorf("mask %q: %w", f[7], err)
		}
		var b [4]byte
		binary.NativeEndian.PutUint32(b[:], uint32(to))
		out = append(out, hop{netip.PrefixFrom(netip.AddrFrom4(b), bits.OnesCount32(uint32(mask))), f[0]})
	}
	return out, sc.Err()
}

// parseRoutes6 reads /proc/net/ipv6_route: destination, its length in hex, and
// the link as the tenth field.
func parseRoutes6(r io.Reader) ([]hop, error) {
	var out []hop
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 10 {
			continue
		}
		var b [16]byte
		if n, err := hex.Decode(b[:], []byte(f[0])[:min(len(f[0]), 32)]); err != nil || n != 16 {
			return nil, fmt.Errorf("destination %q: not 32 hex digits", f[0])
		}
		length, err := strconv.ParseUint(f[1], 16, 8)
		if err != nil {
			return nil, fmt.Errorf("length %q: %w", f[1], err)
		}
		out = append(out, hop{netip.PrefixFrom(netip.AddrFrom16(b), int(length)), f[9]})
	}
	return out, sc.Err()
}

// routesTo returns the routes that lead to addr other than by the loopback link.
func routesTo(all []hop, addr netip.Addr) []hop {
	var out []hop
	for _, r := range all {
		if r.link != "lo" && r.to.Contains(addr.Unmap()) {
			out = append(out, r)
		}
	}
	return out
}

// ownLinks lists the links of the guest's network namespace by /proc/net/dev,
// whose lines after the first two begin with a name and a colon.
func ownLinks() ([]string, error) {
	b, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return nil, fmt.Errorf("read own links: %w", err)
	}
	return parseLinks(string(b)), nil
}

func parseLinks(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.Contains(name, "|") {
			out = append(out, strings.TrimSpace(name))
		}
	}
	return out
}

// byRoutes is the behind of reaching an address: an unreachable network or host
// is at the route table when the own table has no route to the address. gVisor
// lists no IPv6 routes at all, so for IPv6 no link but lo has to be there.
func byRoutes(addr netip.Addr) behind {
	return func(errno syscall.Errno) (hostile.Place, string) {
		routes, err := ownRoutes()
		if err != nil {
			return hostile.Unknown, err.Error()
		}
		links, err := ownLinks()
		if err != nil {
			return hostile.Unknown, err.Error()
		}
		note := fmt.Sprintf("%d routes in the own table, %d of them to %s; links %s",
			len(routes), len(routesTo(routes, addr)), addr, strings.Join(links, ", "))
		unreachable := errno == unix.ENETUNREACH || errno == unix.EHOSTUNREACH
		shown := len(routesTo(routes, addr)) == 0 && (addr.Unmap().Is4() || onlyLoopback(links))
		if unreachable && shown {
			return hostile.RouteTable, note
		}
		place, why := nowhere(errno)
		return place, why + "; " + note
	}
}

func onlyLoopback(links []string) bool { return len(links) == 0 || len(links) == 1 && links[0] == "lo" }
