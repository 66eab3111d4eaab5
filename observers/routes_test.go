package observers

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// Tables as Linux 6.18 shows them; amd64 writes addresses with the last byte first.
const (
	routesHead   = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT                                                       \n"
	routeDefault = "up0\t00000000\t010012C6\t0003\t0\t0\t0\t00000000\t0\t0\t0                                                                              \n"
	routeNet     = "up0\t000012C6\t00000000\t0001\t0\t0\t0\t0000FEFF\t0\t0\t0                                                                              \n"
	routeTen     = "up0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0                                                                              \n"
	routeLo      = "lo\t0000007F\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0                                                                               \n"
	route6       = "fd007e57000000000000000000000000 7e 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001      up0\n"
	route6Lo     = "00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo\n"
)

func TestRoutesOfAProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		v4, v6 string // "" is no such file
		want   []string
		err    string
	}{
		"none":         {routesHead, route6Lo, nil, ""},
		"loopback":     {routesHead + routeLo, route6Lo, nil, ""},
		"both":         {routesHead + routeDefault + routeNet + routeLo, route6 + route6Lo, []string{"0.0.0.0 over up0", "198.18.0.0 over up0", "fd007e57000000000000000000000000/7e over up0"}, ""},
		"no IPv6":      {routesHead + routeNet, "", []string{"198.18.0.0 over up0"}, ""},
		"no table":     {"", route6, nil, "read routes"},
		"short line":   {routesHead + "up0\t00000000\n", route6, nil, "unexpected line"},
		"bad address":  {routesHead + "up0\tGGGGGGGG\t010012C6\t0003\t0\t0\t0\t00000000\n", route6, nil, "invalid syntax"},
		"long address": {routesHead + "up0\t0000000000\t010012C6\t0003\t0\t0\t0\t00000000\n", route6, nil, "unexpected line"},
		"bad v6 line":  {routesHead, "fd007e57 7e up0\n", nil, "unexpected line"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := Host{Proc: t.TempDir()}
			files := map[string]string{}
			if tc.v4 != "" {
				files["71/net/route"] = tc.v4
			}
			if tc.v6 != "" {
				files["71/net/ipv6_route"] = tc.v6
			}
			plant(t, h.Proc, files)
			got, err := routesOf(h, "71")
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

// routed is a jail whose process has the table and has loaded so many filters.
func routed(t *testing.T, h Host, pid string, filters int, table string) {
	t.Helper()
	files := filesOf(pid, filters, apart())
	files[pid+"/net/route"], files[pid+"/net/ipv6_route"] = table, route6Lo
	plant(t, h.Proc, files)
}

func TestRoutesOfTheJob(t *testing.T) {
	g := NewWithT(t)
	h := jail(t, 71, 72, 73)
	routed(t, h, "71", 1, routesHead+routeLo)
	routed(t, h, "72", 1, routesHead+routeDefault+routeNet)
	routed(t, h, "73", 0, routesHead+routeDefault+routeNet+routeTen) // not locked in yet: the host's table
	w, err := NewRoutes(h, nil).Watch(t.Context(), Subject{Place: "here", Cgroup: jailJob})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	g.Expect(os.RemoveAll(filepath.Join(h.Proc, "72"))).To(Succeed())
	w.Sample()
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Samples).To(Equal(2))
	g.Expect(obs.Values["routes"]).To(Equal(Reading{Worst: 2, After: 0, Unit: "count"}))
	g.Expect(obs.Found).To(Equal([]string{"process 72 of the job has routes: 0.0.0.0 over up0, 198.18.0.0 over up0"}))
}

func TestRoutesSayWhatTheyLost(t *testing.T) {
	g := NewWithT(t)
	h := jail(t, 71)
	routed(t, h, "71", 0, routesHead)
	w, err := NewRoutes(h, nil).Watch(t.Context(), Subject{Cgroup: jailJob})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	obs := w.Stored()
	g.Expect(obs.Samples).To(BeZero())
	g.Expect(obs.Lost).To(Equal("no process of the job was seen after it had locked itself in"))
	g.Expect(obs.Values).To(BeEmpty())

	h = jail(t, 71)
	routed(t, h, "71", 1, routesHead+"what is this\n")
	w, err = NewRoutes(h, nil).Watch(t.Context(), Subject{Cgroup: jailJob})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	g.Expect(w.Stored().Lost).To(ContainSubstring(`unexpected line "what is this"`))
}

func TestRoutesControl(t *testing.T) {
	for name, tc := range map[string]struct {
		table, reason string
	}{
		"default route":      {routesHead + routeNet + routeDefault, ""},
		"none":               {routesHead + routeLo, "the default route was not seen"},
		"another that looks": {routesHead + routeTen, "the default route was not seen"},
		"unreadable":         {routesHead + "?\n", "unexpected line"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := Host{Proc: t.TempDir()}
			plant(t, h.Proc, map[string]string{"thread-self/net/route": tc.table})
			inside := false
			c := NewRoutes(h, func(f func() error) error { inside = true; return f() }).Control(t.Context())
			g.Expect(inside).To(BeTrue(), "it reads in the place")
			g.Expect(c.Passed).To(Equal(tc.reason == ""), "%+v", c)
			g.Expect(c.Reason).To(ContainSubstring(tc.reason))
		})
	}
	c := NewRoutes(Host{}, func(func() error) error { return errors.New("no such namespace") }).Control(t.Context())
	if c.Passed || c.Reason != "no such namespace" {
		t.Errorf("%+v", c)
	}
}
