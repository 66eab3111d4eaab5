package observers

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	egressV4 = netip.MustParseAddr("198.18.1.1")
	egressV6 = netip.MustParseAddr("fd00:7e57::1:1")
)

// armed is an egress observer over a fake kernel in which both destinations have
// passed their control.
func armed(t *testing.T, fake *fakeNft) *Egress {
	t.Helper()
	fake.counters = map[string]tally{counterName(egressV4): {}, counterName(egressV6): {}}
	fake.rules = map[string]uint64{counterName(egressV4): 3, counterName(egressV6): 4}
	e, err := newEgress(&Wire{Name: "place", Peer: "down0"}, fake.conn(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.For("place", []netip.Addr{egressV4, egressV6}); err != nil {
		t.Fatal(err)
	}
	exact := map[netip.Addr]tally{egressV4: {1, controlBytes(egressV4)}, egressV6: {1, controlBytes(egressV6)}}
	for address, counter := range exact {
		fake.counters[counterName(address)] = counter
	}
	if err := e.settle(exact); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestASilentPlaceReadsZero(t *testing.T) {
	g := NewWithT(t)
	w, err := armed(t, &fakeNft{}).Watch(t.Context(), Subject{Place: "place"})
	g.Expect(err).NotTo(HaveOccurred())
	w.Sample()
	w.Ended()
	zero := func(unit string) Reading { return Reading{0, 0, 0, unit} }
	g.Expect(w.Stored()).To(Equal(Observation{Observer: "egress", Place: "place", Samples: 3, Values: map[string]Reading{
		"198.18.1.1 packets": zero("packets"), "198.18.1.1 bytes": zero("bytes"),
		"fd00:7e57::1:1 packets": zero("packets"), "fd00:7e57::1:1 bytes": zero("bytes"),
		"packets": zero("packets"), "bytes": zero("bytes"),
	}}))
}

func TestWhatLeftIsReported(t *testing.T) {
	g := NewWithT(t)
	fake := &fakeNft{}
	w, err := armed(t, fake).Watch(t.Context(), Subject{Place: "place"})
	g.Expect(err).NotTo(HaveOccurred())
	fake.counters[counterName(egressV6)] = fake.counters[counterName(egressV6)].add(tally{2, 100})
	seen := w.Stored()
	g.Expect(seen.Lost).To(BeEmpty())
	g.Expect(seen.Values).To(HaveKeyWithValue("fd00:7e57::1:1 packets", Reading{0, 2, 2, "packets"}))
	g.Expect(seen.Values).To(HaveKeyWithValue("bytes", Reading{0, 100, 100, "bytes"}))
	g.Expect(seen.Values).To(HaveKeyWithValue("198.18.1.1 packets", Reading{0, 0, 0, "packets"}))
	g.Expect(seen.Found).To(Equal([]string{"2 packets, 100 bytes left place for fd00:7e57::1:1"}))
}

func TestABlindedWatchIsLost(t *testing.T) {
	for name, blind := range map[string]func(*fakeNft){
		"counter gone":     func(f *fakeNft) { delete(f.counters, counterName(egressV4)) },
		"counter reset":    func(f *fakeNft) { f.counters[counterName(egressV4)] = tally{} },
		"rule gone":        func(f *fakeNft) { delete(f.rules, counterName(egressV4)) },
		"rule replaced":    func(f *fakeNft) { f.rules[counterName(egressV4)] = 99 },
		"everything gone":  func(f *fakeNft) { f.counters, f.rules = nil, nil },
		"counter replaced": func(f *fakeNft) { f.counters[counterName(egressV4)] = tally{1, 1} },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fake := &fakeNft{}
			w, err := armed(t, fake).Watch(t.Context(), Subject{Place: "place"})
			g.Expect(err).NotTo(HaveOccurred())
			blind(fake)
			g.Expect(w.Stored().Lost).To(And(ContainSubstring("198.18.1.1"), ContainSubstring(errGone.Error())))
		})
	}
}

func TestAnAddressBelongsToOnePlace(t *testing.T) {
	for name, list := range map[string][]netip.Addr{
		"taken":  {egressV4},
		"mapped": {netip.MustParseAddr("::ffff:198.18.1.1")},
		"twice":  {netip.MustParseAddr("198.18.1.2"), netip.MustParseAddr("198.18.1.2")},
		"none":   {{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := armed(t, &fakeNft{})
			g.Expect(e.For("other", list)).To(MatchError(ContainSubstring("watch destinations of other")))
			_, err := e.Watch(t.Context(), Subject{Place: "other"})
			g.Expect(err).To(MatchError(ContainSubstring("no destinations")))
		})
	}
}

func TestAWatchNeedsItsControl(t *testing.T) {
	g := NewWithT(t)
	fake := &fakeNft{}
	e := armed(t, fake)
	late := netip.MustParseAddr("198.18.1.3")
	g.Expect(e.For("place", []netip.Addr{late})).To(Succeed())
	_, err := e.Watch(t.Context(), Subject{Place: "place"})
	g.Expect(err).To(MatchError(ContainSubstring("counter of 198.18.1.3 has not passed its control")))
}

func TestAControlMustBeExact(t *testing.T) {
	for name, seen := range map[string]tally{
		"none": {}, "two": {2, 2 * controlBytes(egressV4)}, "longer": {1, controlBytes(egressV4) + 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := armed(t, &fakeNft{})
			err := e.settle(map[netip.Addr]tally{egressV4: seen, egressV6: {1, controlBytes(egressV6)}})
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("counter of 198.18.1.1 shows"), Not(ContainSubstring("fd00")))))
		})
	}
}

func TestAnObserverWithoutDestinationsIsBlind(t *testing.T) {
	g := NewWithT(t)
	e, err := newEgress(&Wire{Name: "place"}, (&fakeNft{}).conn(t))
	g.Expect(err).NotTo(HaveOccurred())
	c := e.Control(t.Context())
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(ContainSubstring("no destinations"))
}
