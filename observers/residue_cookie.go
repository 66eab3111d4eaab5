package observers

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// netID names one network namespace. The kernel gives a namespace's inode to
// the next one as soon as it is gone, and a busy worker makes many; the cookie
// is given once a boot (socket(7), SO_NETNS_COOKIE, Linux 5.14). It is 0 where
// the kernel has none.
type netID struct{ inode, cookie uint64 }

// same tells whether the two can be one namespace.
func (a netID) same(b netID) bool {
	return a.inode == b.inode && (a.cookie == 0 || b.cookie == 0 || a.cookie == b.cookie)
}

// netIDOf reads the identity behind a /proc/PID/ns/net or its like, whose inode
// is known. What is no namespace file, as in a recorded tree, has no cookie.
func netIDOf(path string, inode uint64) netID {
	cookie, err := netCookie(path)
	if err != nil {
		return netID{inode: inode}
	}
	return netID{inode, cookie}
}

// netCookie asks a socket made in the namespace.
func netCookie(path string) (cookie uint64, err error) {
	there, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("read namespace cookie: %w", err)
	}
	defer there.Close()
	done := make(chan struct{})
	go func() { // on a thread of its own, which ends where it cannot come back
		defer close(done)
		runtime.LockOSThread()
		here, e := os.Open("/proc/thread-self/ns/net")
		if e != nil {
			err = e
			runtime.UnlockOSThread()
			return
		}
		defer here.Close()
		if err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			return
		}
		cookie, err = socketCookie()
		if e := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); e != nil {
			err = errors.Join(err, e)
			return
		}
		runtime.UnlockOSThread()
	}()
	<-done
	if err != nil {
		return 0, fmt.Errorf("read namespace cookie: %w", err)
	}
	return cookie, nil
}

func socketCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return cookie, errors.Join(err, unix.Close(fd))
}
