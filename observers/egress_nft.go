package observers

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

const (
	egressTable = "tenwalls_egress"
	countChain  = "count"
	dropChain   = "drop"

	// nftBatch bounds the messages of one transaction: each is acknowledged by
	// itself, and acknowledgements beyond the socket's buffer are lost.
	nftBatch = 50
)

// tally is what a counter holds. Bytes are those of IP packets, without the
// link's header.
type tally struct{ packets, bytes int64 }

func (t tally) add(u tally) tally   { return tally{t.packets + u.packets, t.bytes + u.bytes} }
func (t tally) minus(u tally) tally { return tally{t.packets - u.packets, t.bytes - u.bytes} }
func (t tally) String() string      { return fmt.Sprintf("%d packets, %d bytes", t.packets, t.bytes) }

// ruleset is the nftables side of [Egress]: one table, one counter and one rule
// for each destination.
//
// It hangs on the ingress hook of the wire's far end, which was measured to see
// every frame that leaves the place: those of the host's IP stack, forwarded
// ones, and raw ones of packet sockets, which pass by the output and postrouting
// hooks. The egress hook of the near end sees those too, but takes their
// protocol from what the sender says it is; the far end takes it from the frame.
type ruleset struct {
	conn  *nftables.Conn
	table *nftables.Table
	count *nftables.Chain
	drop  *nftables.Chain
}

// installCounters makes the table on the link named peer. A table that is already there
// is an error: its counters would be somebody else's.
func installCounters(conn *nftables.Conn, peer string) (*ruleset, error) {
	r := &ruleset{conn: conn}
	r.table = conn.CreateTable(&nftables.Table{Name: egressTable, Family: nftables.TableFamilyNetdev})
	chain := func(name string, priority nftables.ChainPriority) *nftables.Chain {
		return conn.AddChain(&nftables.Chain{
			Name: name, Table: r.table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookIngress, Priority: &priority, Device: peer,
		})
	}
	r.count, r.drop = chain(countChain, 0), chain(dropChain, 1) // counted before dropped
	if err := conn.Flush(); err != nil {
		return nil, fmt.Errorf("install nft table %s on %s: %w", egressTable, peer, err)
	}
	return r, nil
}

// remove deletes the table with all its counters and rules.
func (r *ruleset) remove() error {
	r.conn.DelTable(r.table)
	if err := r.conn.Flush(); err != nil {
		return fmt.Errorf("remove nft table %s: %w", egressTable, err)
	}
	return nil
}

// add makes counters for the destinations, at zero.
func (r *ruleset) add(to []netip.Addr) error {
	for i, address := range to {
		r.conn.AddObj(&nftables.NamedObj{Table: r.table, Name: counterName(address), Type: nftables.ObjTypeCounter, Obj: &expr.Counter{}})
		r.conn.AddRule(&nftables.Rule{
			Table: r.table, Chain: r.count, UserData: nftComment(address),
			Exprs: append(nftMatch(address), &expr.Objref{Type: int(nftables.ObjTypeCounter), Name: counterName(address)}),
		})
		if (i+1)%nftBatch == 0 || i == len(to)-1 {
			if err := r.conn.Flush(); err != nil {
				return fmt.Errorf("add counters: %w", err)
			}
		}
	}
	return nil
}

// discard makes what goes to the destinations be dropped after it was counted.
func (r *ruleset) discard(to []netip.Addr) error {
	for i, address := range to {
		r.conn.AddRule(&nftables.Rule{
			Table: r.table, Chain: r.drop, UserData: nftComment(address),
			Exprs: append(nftMatch(address), &expr.Verdict{Kind: expr.VerdictDrop}),
		})
		if (i+1)%nftBatch == 0 || i == len(to)-1 {
			if err := r.conn.Flush(); err != nil {
				return fmt.Errorf("add drop rules: %w", err)
			}
		}
	}
	return nil
}

// read gives every counter of the table by its name. A table that is gone reads
// as an empty one, so the caller must look for the names it knows.
func (r *ruleset) read() (map[string]tally, error) {
	objects, err := r.conn.GetNamedObjects(r.table)
	if err != nil {
		return nil, fmt.Errorf("read nft counters: %w", err)
	}
	tallies := make(map[string]tally, len(objects))
	for _, object := range objects {
		named, isNamed := object.(*nftables.NamedObj)
		if !isNamed {
			continue
		}
		if counter, isCounter := named.Obj.(*expr.Counter); isCounter {
			tallies[named.Name] = tally{int64(counter.Packets), int64(counter.Bytes)}
		}
	}
	return tallies, nil
}

// rules gives the kernel's handles of the counting rules by counter name. A
// handle is never used twice in a table, so the same handle is the same rule.
func (r *ruleset) rules() (map[string]uint64, error) {
	rules, err := r.conn.GetRules(r.table, r.count)
	if err != nil {
		return nil, fmt.Errorf("read nft rules: %w", err)
	}
	handles := make(map[string]uint64, len(rules))
	for _, rule := range rules {
		for _, e := range rule.Exprs {
			if counter, isCounter := e.(*expr.Objref); isCounter {
				handles[counter.Name] = rule.Handle
			}
		}
	}
	return handles, nil
}

// close lets go of the connection to the kernel.
func (r *ruleset) close() error { return r.conn.CloseLasting() }

// counterName is a name that nft(8) can read back: no dots and no colons.
func counterName(to netip.Addr) string {
	return "to_" + strings.NewReplacer(".", "_", ":", "_").Replace(to.Unmap().String())
}

// nftComment is the address as nft(8) prints it behind the rule.
func nftComment(to netip.Addr) []byte {
	return userdata.AppendString(nil, userdata.TypeComment, to.Unmap().String())
}

// nftMatch is the start of a rule for packets to an address. The netdev family
// knows no protocol by itself, so the rule asks for it first.
func nftMatch(to netip.Addr) []expr.Any {
	to = to.Unmap()
	protocol, offset := uint16(unix.ETH_P_IP), uint32(16) // RFC 791, destination address
	if to.Is6() {
		protocol, offset = unix.ETH_P_IPV6, 24 // RFC 8200
	}
	address := to.AsSlice()
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(protocol)},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(address))},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: address},
	}
}

// errGone is why a counter that is no longer there makes its observer blind.
var errGone = errors.New("the nft counter is gone or was replaced")
