//go:build privileged

package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/reports"
)

// A mutant that changes nothing survives, and the proof says so.
func TestProveTellsASurvivor(t *testing.T) {
	cfg := badConfig(t)
	saved := mutants
	t.Cleanup(func() { mutants = saved })
	mutants = append(mutants[:len(mutants):len(mutants)], &Mutant{
		Name: "nothing-changed", Title: "nothing", Part: reports.PartWall, Source: "none", Cells: []string{"credentials"},
		Predicted: stolen(),
	})
	p, err := Prove(t.Context(), ProveOptions{Config: cfg, Version: "test", Mutants: []string{"nothing-changed", "lie-canary-world-readable"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Outcome != reports.Disproven || p.Complete || len(p.Mutants) != 2 {
		t.Fatalf("%s, complete %t, %d mutants", p.Outcome, p.Complete, len(p.Mutants))
	}
	for _, m := range p.Mutants {
		want := reports.Killed
		if m.Name == "nothing-changed" {
			want = reports.Survived
		}
		if m.Killing != want {
			t.Errorf("%s is %s: %s", m.Name, m.Killing, m.Reason)
		}
	}
	if _, err := reports.EncodeProof(p); err != nil {
		t.Error(err)
	}
	groundIsClear(t, cfg)
}

// A proof that is interrupted removes what it made and proves nothing.
func TestProveIsInterrupted(t *testing.T) {
	cfg := badConfig(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := Prove(ctx, ProveOptions{Config: cfg, Version: "test", Progress: func(p ProveProgress) {
		if p.Mutant != nil {
			cancel(errors.New("enough"))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Interrupted != "enough" || p.Outcome == reports.Proven {
		t.Errorf("%s, interrupted %q", p.Outcome, p.Interrupted)
	}
	for _, m := range p.Mutants {
		if m.Killing == "" {
			t.Errorf("%s was forgotten", m.Name)
		}
	}
	groundIsClear(t, cfg)
}

// dangerous are the mutants that could harm the machine, were they not bounded.
var dangerous = []string{
	"memory-unlimited", "processes-unlimited", "processes-host-alone", "scratch-unsized", "scratch-host-folder", "root-overlay-self", "root-writable",
	"tmp-open", "output-unbounded", "filter-unloaded-and-route", "metadata-route", "metadata-overlooked", "metadata-dropped", "capabilities-kept",
	"teardown-skipped", "processor-per-process",
}

// Bounds of what the machine outside may notice of one mutant: what the payload
// may take beyond the grant, of the jobs that are there at once.
const (
	memoryNoticed = 4 << 30 // guardFactor times 256 MiB, and other programs' noise
	diskNoticed   = 1 << 30
)

// While a wall is down the machine outside stays within stated bounds.
func TestDangerousMutantsStayWithinBounds(t *testing.T) {
	cfg := badConfig(t)
	if err := os.Mkdir(cfg.StateDir, 0o711); err != nil { // so that its file system can be watched
		t.Fatal(err)
	}
	packets := countCanaries(t)
	groups, err := cgroup.Detect("/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range dangerous {
		t.Run(name, func(t *testing.T) {
			asked, err := MutantsNamed([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			shop, err := openWorkshop(cfg.StateDir, groups)
			if err != nil {
				t.Fatal(err)
			}
			watch := watchMachine(t, cfg.StateDir)
			m := (&prover{opt: ProveOptions{Config: cfg, Version: "test"}, shop: shop}).line(t.Context(), asked[0])
			memory, disk := watch()
			if err := shop.close(); err != nil {
				t.Error(err)
			}
			if m.Killing == reports.Survived || m.Killing == reports.NotAsked {
				t.Errorf("%s: %s", m.Killing, m.Reason) // it was not down, so that nothing was shown here
			}
			if memory > memoryNoticed || disk > diskNoticed {
				t.Errorf("%d bytes of memory and %d of disk were taken at the worst moment", memory, disk)
			}
			t.Logf("at most %d MiB of memory and %d MiB of disk less", memory>>20, disk>>20)
			groundIsClear(t, cfg)
		})
	}
	if n := packets(); n != 0 {
		t.Errorf("%d packets to canary destinations in the machine's own network namespace", n)
	}
}

// watchMachine samples free memory and the free space under dir until it is
// called, and returns how much less there was at the worst moment.
func watchMachine(t *testing.T, dir string) func() (memory, disk int64) {
	t.Helper()
	free := func() (int64, int64) {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			t.Error(err)
		}
		return available(t), int64(fs.Bfree) * fs.Bsize
	}
	memory0, disk0 := free()
	var memory, disk int64
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			m, d := free()
			memory, disk = max(memory, memory0-m), max(disk, disk0-d)
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	return func() (int64, int64) {
		close(stop)
		done.Wait()
		return memory, disk
	}
}

// available is MemAvailable of proc_meminfo(5), in bytes.
func available(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Error(err)
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Error(err)
			}
			return n << 10
		}
	}
	t.Error("no MemAvailable")
	return 0
}

// countCanaries counts, in the machine's own network namespace, what goes to the
// destinations that only attempts are sent to.
func countCanaries(t *testing.T) func() uint64 {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	table := conn.AddTable(&nftables.Table{Name: fmt.Sprintf("tenwalls_test_%d", os.Getpid()), Family: nftables.TableFamilyINet})
	chain := conn.AddChain(&nftables.Chain{
		Name: "out", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityFilter,
	})
	match := func(family byte, offset uint32, address, mask []byte) {
		masked := make([]byte, len(address))
		for i := range address {
			masked[i] = address[i] & mask[i]
		}
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{family}},
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(address))},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: uint32(len(address)), Mask: mask, Xor: make([]byte, len(address))},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: masked},
			&expr.Counter{},
		}})
	}
	match(unix.NFPROTO_IPV4, 16, []byte{198, 18, 0, 0}, []byte{255, 254, 0, 0})
	match(unix.NFPROTO_IPV6, 24, append([]byte{0xfd, 0, 0x7e, 0x57}, make([]byte, 12)...), append([]byte{255, 255, 255, 255, 255, 255, 255, 255}, make([]byte, 8)...))
	for _, a := range fixtures.MetadataAddresses() {
		whole := make([]byte, a.BitLen()/8)
		for i := range whole {
			whole[i] = 255
		}
		if a.Is4() {
			match(unix.NFPROTO_IPV4, 16, a.AsSlice(), whole)
		} else {
			match(unix.NFPROTO_IPV6, 24, a.AsSlice(), whole)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.DelTable(table)
		if err := conn.Flush(); err != nil {
			t.Error(err)
		}
	})
	return func() (n uint64) {
		rules, err := conn.GetRules(table, chain)
		if err != nil || len(rules) == 0 {
			t.Fatalf("%d rules: %v", len(rules), err)
		}
		for _, r := range rules {
			for _, e := range r.Exprs {
				if c, ok := e.(*expr.Counter); ok {
					n += c.Packets
				}
			}
		}
		return n
	}
}
