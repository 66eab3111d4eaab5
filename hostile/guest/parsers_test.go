package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRouteTables(t *testing.T) {
	four, err := parseRoutes4(strings.NewReader(fixture(t, "route")))
	if err != nil {
		t.Fatal(err)
	}
	six, err := parseRoutes6(strings.NewReader(fixture(t, "ipv6_route")))
	if err != nil {
		t.Fatal(err)
	}
	want := []hop{
		{netip.MustParsePrefix("192.0.2.0/24"), "veth0"}, {netip.MustParsePrefix("0.0.0.0/0"), "veth0"},
		{netip.MustParsePrefix("2001:db8::/64"), "veth0"}, {netip.MustParsePrefix("::1/128"), "lo"},
	}
	all := slices.Concat(four, six)
	if !slices.Equal(all, want) {
		t.Fatalf("routes: %v", all)
	}
	for addr, n := range map[string]int{
		"192.0.2.9": 2, "169.254.169.254": 1, "::ffff:169.254.169.254": 1, "2001:db8::9": 1, "2001:db9::9": 0, "::1": 0,
	} {
		if got := routesTo(all, netip.MustParseAddr(addr)); len(got) != n {
			t.Errorf("routes to %s: %v, want %d", addr, got, n)
		}
	}
	if _, err := parseRoutes4(strings.NewReader("Iface\nveth0 xx 0 0 0 0 0 00000000\n")); err == nil {
		t.Error("a destination that is no number was taken")
	}
	if _, err := parseRoutes6(strings.NewReader("2001 40 0 0 0 0 0 0 0 veth0\n")); err == nil {
		t.Error("a destination of four digits was taken")
	}
}

func TestLinks(t *testing.T) {
	links := parseLinks(fixture(t, "net-dev"))
	if !slices.Equal(links, []string{"lo", "veth0"}) || onlyLoopback(links) || !onlyLoopback(links[:1]) || !onlyLoopback(nil) {
		t.Errorf("links: %v", links)
	}
}

func TestStatus(t *testing.T) {
	for name, named := range map[string]string{"status-2026": "1", "status-2022": ""} {
		s := parseStatus(fixture(t, name))
		if !isNobody(s, "65534") || isNobody(s, "0") || s["NoNewPrivs"] != named {
			t.Errorf("%s: %v", name, s)
		}
		if empty, note := noCapability(s); !empty {
			t.Errorf("%s: %s", name, note)
		}
		for _, field := range []string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd"} {
			was := s[field]
			for _, lowered := range []string{was + " 0", was + " 6", was + " 44", "", "65534 65534 0 65534", "0000000000000400"} {
				s[field] = lowered
				empty, _ := noCapability(s)
				if isNobody(s, "65534") && empty && !(field == "Groups" && lowered == "") {
					t.Errorf("%s: %s %q passes", name, field, lowered)
				}
			}
			s[field] = was
		}
	}
	s := parseStatus(fixture(t, "status-2026"))
	s["CapAmb"] = "0000000000000001"
	if empty, _ := noCapability(s); empty {
		t.Error("an ambient capability passes")
	}
}

func TestRanges(t *testing.T) {
	for want, numbers := range map[string][]int{
		"none": nil, "0": {0}, "0-1": {0, 1}, "0-2,5,7-8": {0, 1, 2, 5, 7, 8},
	} {
		if got := ranges(numbers); got != want {
			t.Errorf("ranges(%v) is %q, not %q", numbers, got, want)
		}
	}
}
