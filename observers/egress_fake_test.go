package observers

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// fakeNft stands in for the kernel's nftables: it acknowledges all, records what
// it was sent, and answers dumps from its fields.
type fakeNft struct {
	sent     strings.Builder
	counters map[string]tally
	rules    map[string]uint64 // counter name to rule handle
	refuse   unix.Errno        // answer to the next batch
}

func (f *fakeNft) conn(t *testing.T) *nftables.Conn {
	t.Helper()
	conn, err := nftables.New(nftables.WithTestDial(f.answer))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func (f *fakeNft) answer(requests []netlink.Message) ([]netlink.Message, error) {
	var replies []netlink.Message
	for _, request := range requests {
		fmt.Fprintf(&f.sent, "type %#04x flags %#x\n%s", uint16(request.Header.Type), uint16(request.Header.Flags), hex.Dump(request.Data))
		switch request.Header.Type & 0xff {
		case unix.NFT_MSG_GETOBJ:
			for name, counter := range f.counters {
				replies = append(replies, part(unix.NFT_MSG_NEWOBJ, func(e *netlink.AttributeEncoder) {
					e.String(unix.NFTA_OBJ_TABLE, egressTable)
					e.String(unix.NFTA_OBJ_NAME, name)
					e.Uint32(unix.NFTA_OBJ_TYPE, unix.NFT_OBJECT_COUNTER)
					e.Nested(unix.NFTA_OBJ_DATA, func(e *netlink.AttributeEncoder) error {
						e.Uint64(unix.NFTA_COUNTER_PACKETS, uint64(counter.packets))
						e.Uint64(unix.NFTA_COUNTER_BYTES, uint64(counter.bytes))
						return nil
					})
				}))
			}
			return finish(request, replies), nil
		case unix.NFT_MSG_GETRULE:
			for name, handle := range f.rules {
				replies = append(replies, part(unix.NFT_MSG_NEWRULE, func(e *netlink.AttributeEncoder) {
					e.String(unix.NFTA_RULE_TABLE, egressTable)
					e.String(unix.NFTA_RULE_CHAIN, countChain)
					e.Uint64(unix.NFTA_RULE_HANDLE, handle)
					e.Nested(unix.NFTA_RULE_EXPRESSIONS, func(e *netlink.AttributeEncoder) error {
						e.Nested(unix.NFTA_LIST_ELEM, func(e *netlink.AttributeEncoder) error {
							e.String(unix.NFTA_EXPR_NAME, "objref")
							e.Nested(unix.NFTA_EXPR_DATA, func(e *netlink.AttributeEncoder) error {
								e.Uint32(unix.NFTA_OBJREF_IMM_TYPE, unix.NFT_OBJECT_COUNTER)
								e.String(unix.NFTA_OBJREF_IMM_NAME, name)
								return nil
							})
							return nil
						})
						return nil
					})
				}))
			}
			return finish(request, replies), nil
		}
		if request.Header.Flags&netlink.Acknowledge != 0 {
			replies = append(replies, netlink.Message{
				Header: netlink.Header{Type: netlink.Error, Sequence: request.Header.Sequence, PID: request.Header.PID},
				Data:   binaryutil.NativeEndian.PutUint32(uint32(-int32(f.refuse))),
			})
		}
	}
	return replies, nil
}

// finish makes a dump's answer: all parts of one message, then its end.
func finish(request netlink.Message, parts []netlink.Message) []netlink.Message {
	parts = append(parts, netlink.Message{Header: netlink.Header{Type: netlink.Done}, Data: make([]byte, 4)})
	for i := range parts {
		parts[i].Header.Flags |= netlink.Multi
		parts[i].Header.Sequence, parts[i].Header.PID = request.Header.Sequence, request.Header.PID
	}
	return parts
}

// part makes one nftables message: nfgenmsg, then attributes.
func part(kind uint16, encode func(*netlink.AttributeEncoder)) netlink.Message {
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	encode(e)
	attributes, err := e.Encode()
	if err != nil {
		panic(err)
	}
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind)},
		Data:   append([]byte{unix.NFPROTO_NETDEV, 0, 0, 0}, attributes...),
	}
}
