//go:build privileged

package observers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/moby/sys/mountinfo"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
)

func testGrounds(t testing.TB) Grounds {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the controls of residue need root")
	}
	t.Cleanup(func() {
		groups, err := filepath.Glob("/sys/fs/cgroup/*/tenwalls-test-residue")
		for _, group := range append(groups, "/sys/fs/cgroup/tenwalls-test-residue") {
			if e := os.Remove(group); !errors.Is(e, os.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
	return Grounds{Cgroup: "/tenwalls-test-residue", Scratch: t.TempDir(), Spawn: reexec{Local()}}
}

func TestTheResidueControlSeesEachKindAndLeavesNone(t *testing.T) {
	g := NewWithT(t)
	grounds := testGrounds(t)
	c := NewResidue(Local(), grounds).Control(t.Context())
	g.Expect(c.Passed).To(BeTrue(), c.Reason)
	g.Expect(c.Seen).To(Equal("processes 1, mounts 1, namespaces 1, links 2, cgroups " + cgroupCount(c.Seen) + ", state 1, nft_tables 1, scratch 1"))
	files, err := os.ReadDir(grounds.Scratch)
	g.Expect(files, err).To(BeEmpty())
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(grounds.Scratch))
	g.Expect(mounts, err).To(BeEmpty())
}

// cgroupCount is the number of hierarchies, which is the machine's.
func cgroupCount(seen string) string {
	_, rest, _ := strings.Cut(seen, "cgroups ")
	count, _, _ := strings.Cut(rest, ",")
	return count
}

// A scan that looks elsewhere misses what was left there, and says what.
func TestTheResidueControlFailsWhenBlind(t *testing.T) {
	g := NewWithT(t)
	grounds := testGrounds(t)
	blind := Local()
	blind.Proc = newResidueTree(t, "pids").watch.scan.host.Proc
	c := NewResidue(blind, grounds).Control(t.Context())
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(HaveSuffix("missed what was left: processes, mounts, namespaces"))

	grounds.Spawn = nil
	c = NewResidue(Local(), grounds).Control(t.Context())
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(ContainSubstring("nothing to start it with"))
}

func TestAnInterruptedResidueControlLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	grounds := testGrounds(t)
	grounds.Spawn = failingSpawner{}
	c := NewResidue(Local(), grounds).Control(t.Context())
	g.Expect(c.Reason).To(ContainSubstring(errSpawn.Error()))
	files, err := os.ReadDir(grounds.Scratch)
	g.Expect(files, err).To(BeEmpty())
}

var errSpawn = errors.New("no processes today")

type failingSpawner struct{}

func (failingSpawner) Spawn(context.Context, Child) (*os.Process, error) { return nil, errSpawn }

func TestLinksAndTablesLeftInAPlaceAreResidue(t *testing.T) {
	g := NewWithT(t)
	grounds := testGrounds(t)
	w := newWire(t)
	grounds.Places = []string{w.Place}
	watch, err := NewResidue(Local(), grounds).Watch(t.Context(), Subject{Place: "residue-test-place", Container: "residue-test-container"})
	g.Expect(err).NotTo(HaveOccurred())
	must(t, space{path: w.Place}.enter(func(links *netlink.Handle, conn *nftables.Conn) error {
		conn.AddTable(&nftables.Table{Name: "forgotten", Family: nftables.TableFamilyINet})
		return errors.Join(conn.Flush(), links.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "forgotten0", TxQLen: -1}}))
	}))
	seen := watch.Stored()
	g.Expect(seen.Lost).To(BeEmpty())
	g.Expect(seen.Found).To(ConsistOf("link forgotten0 in "+w.Place, "nft table forgotten in "+w.Place))
	g.Expect(seen.Values["links"]).To(Equal(Reading{0, 1, 1, "count"}))
	g.Expect(seen.Values["nft_tables"]).To(Equal(Reading{0, 1, 1, "count"}))
}

func BenchmarkResidueControl(b *testing.B) {
	r := NewResidue(Local(), testGrounds(b))
	for b.Loop() {
		if c := r.Control(b.Context()); !c.Passed {
			b.Fatal(c.Reason)
		}
	}
}

func BenchmarkResidueStored(b *testing.B) {
	r := NewResidue(Local(), Grounds{})
	for b.Loop() {
		w, err := r.Watch(b.Context(), Subject{Place: "bench-place", Container: "bench-container", Cgroup: "/tenwalls-bench/none"})
		if err != nil {
			b.Fatal(err)
		}
		w.Stored()
	}
}
