package observers

import (
	"flag"
	"net/netip"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

var updateEgress = flag.Bool("update-egress", false, "write testdata/egress/messages.golden from what is sent now")

// The golden file holds every message of a table with one counter for each
// family, one drop rule and its removal. That the kernel takes them as meant is
// what the privileged tests show.
func TestTheMessagesSentToNftables(t *testing.T) {
	g := NewWithT(t)
	fake := &fakeNft{}
	rules, err := installCounters(fake.conn(t), "down0")
	g.Expect(err).NotTo(HaveOccurred())
	v4, v6 := netip.MustParseAddr("198.18.1.1"), netip.MustParseAddr("fd00:7e57::1:1")
	g.Expect(rules.add([]netip.Addr{v4, v6})).To(Succeed())
	g.Expect(rules.discard([]netip.Addr{v6})).To(Succeed())
	_, err = rules.read()
	g.Expect(err).NotTo(HaveOccurred())
	_, err = rules.rules()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rules.remove()).To(Succeed())

	const golden = "testdata/egress/messages.golden"
	if *updateEgress {
		g.Expect(os.WriteFile(golden, []byte(fake.sent.String()), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(golden)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fake.sent.String()).To(Equal(string(want)))
}

func TestCountersAndRulesAreRead(t *testing.T) {
	g := NewWithT(t)
	fake := &fakeNft{
		counters: map[string]tally{"to_198_18_1_1": {3, 1 << 40}, "to_fd00_7e57__1_1": {}},
		rules:    map[string]uint64{"to_198_18_1_1": 7},
	}
	rules, err := installCounters(fake.conn(t), "down0")
	g.Expect(err).NotTo(HaveOccurred())
	counters, err := rules.read()
	g.Expect(counters, err).To(Equal(fake.counters))
	handles, err := rules.rules()
	g.Expect(handles, err).To(Equal(fake.rules))
}

func TestARefusedTableIsAnError(t *testing.T) {
	fake := &fakeNft{refuse: unix.EEXIST}
	_, err := installCounters(fake.conn(t), "down0")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("install nft table tenwalls_egress on down0")))
}

// A transaction's acknowledgements must fit the socket's buffer, so a long list
// goes in several.
func TestALongListGoesInBatches(t *testing.T) {
	g := NewWithT(t)
	fake := &fakeNft{}
	rules, err := installCounters(fake.conn(t), "down0")
	g.Expect(err).NotTo(HaveOccurred())
	before := strings.Count(fake.sent.String(), batchBegin)
	list := make([]netip.Addr, nftBatch+1)
	for i := range list {
		list[i] = netip.AddrFrom4([4]byte{198, 18, 1, byte(i + 1)})
	}
	g.Expect(rules.add(list)).To(Succeed())
	g.Expect(strings.Count(fake.sent.String(), batchBegin) - before).To(Equal(2))
	g.Expect(strings.Count(fake.sent.String(), newRule)).To(Equal(len(list)))
}

// NFNL_MSG_BATCH_BEGIN and NFT_MSG_NEWRULE, as fakeNft notes them.
const (
	batchBegin = "type 0x0010 "
	newRule    = "type 0x0a06 "
)
