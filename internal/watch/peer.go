package watch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peer is who is at the other end of a unix socket, as the kernel says
// (unix(7), SO_PEERCRED; socket(7), SO_PEERGROUPS): at the time of connect(2).
type peer struct {
	pid    int32
	uid    uint32
	groups []uint32
}

func peerOf(c syscall.Conn) (p peer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		cred, e := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if e != nil {
			inner = fmt.Errorf("SO_PEERCRED: %w", e)
			return
		}
		p = peer{cred.Pid, cred.Uid, []uint32{cred.Gid}}
		more, e := peerGroups(fd)
		if e != nil {
			inner = fmt.Errorf("SO_PEERGROUPS: %w", e)
			return
		}
		p.groups = append(p.groups, more...)
	})
	return p, errors.Join(err, inner)
}

// maxGroups is NGROUPS_MAX (getgroups(2)).
const maxGroups = 65536

// peerGroups are the supplementary groups (Linux 4.13).
func peerGroups(fd uintptr) ([]uint32, error) {
	for n := 64; n <= maxGroups; n *= 4 {
		groups := make([]uint32, n)
		size := uint32(n * 4)
		_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch e {
		case 0:
			return groups[:size/4], nil
		case unix.ERANGE:
		default:
			return nil, e
		}
	}
	return nil, unix.ERANGE
}

// may says whether the peer may ask: root, the daemon's own user, or a member of
// the group (-1: none).
func (p peer) may(gid int) bool {
	return p.uid == 0 || p.uid == uint32(os.Geteuid()) || gid >= 0 && slices.Contains(p.groups, uint32(gid))
}

// gate is a listener that only lets through whom it may. Others are closed as
// soon as they are accepted, without a goroutine, a descriptor or a byte kept.
type gate struct {
	*net.UnixListener
	gid  int
	room chan struct{} // one for each open connection
}

// maxConnections is how many are open at once. Who may ask could hold all of
// them, each for as long as the server's timeouts allow.
const maxConnections = 32

func newGate(l *net.UnixListener, gid int) *gate {
	return &gate{l, gid, make(chan struct{}, maxConnections)}
}

// Accept implements [net.Listener].
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := peerOf(c)
		if err == nil && p.may(g.gid) {
			select {
			case g.room <- struct{}{}:
				return &visitor{UnixConn: c, leave: g.room}, nil
			default: // full: it may try again
			}
		}
		_ = c.Close() // nothing was said on it
	}
}

// visitor gives its place back when it is closed.
type visitor struct {
	*net.UnixConn
	leave <-chan struct{}
	once  sync.Once
}

// Close implements [net.Conn].
func (g *visitor) Close() error {
	g.once.Do(func() { <-g.leave })
	return g.UnixConn.Close()
}
