//go:build privileged

package observers

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel gives a namespace's number away again; the cookie tells the two
// apart, and the same namespace from every way to it.
func TestNetCookieTellsNamespacesApart(t *testing.T) {
	here, err := netCookie("/proc/self/ns/net")
	if err != nil || here == 0 {
		t.Fatalf("own cookie %d: %v", here, err)
	}
	again, err := netCookie("/proc/thread-self/ns/net")
	if err != nil || again != here {
		t.Errorf("the same namespace has cookies %d and %d: %v", here, again, err)
	}
	seen := map[uint64]bool{here: true}
	for range 3 { // each gone before the next, so that the number is free again
		cookie, err := freshCookie()
		if err != nil {
			t.Fatal(err)
		}
		if seen[cookie] {
			t.Errorf("cookie %d was given twice", cookie)
		}
		seen[cookie] = true
	}
}

func freshCookie() (cookie uint64, err error) {
	done := make(chan struct{})
	go func() { // the thread ends with its namespace
		defer close(done)
		runtime.LockOSThread()
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return
		}
		cookie, err = netCookie("/proc/thread-self/ns/net")
	}()
	<-done
	return cookie, err
}

func TestNamespaceOfTheSameNumberIsNotTheJobs(t *testing.T) {
	inode, err := netInode("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	now := netIDOf("/proc/self/ns/net", inode)
	r := residueScan{namespaces: []netID{now}}
	if !r.lived(inode, "/proc/self/ns/net") {
		t.Error("the job's own namespace is not recognised")
	}
	r.namespaces[0].cookie++
	if r.lived(inode, "/proc/self/ns/net") {
		t.Error("another namespace of the same number is taken for the job's")
	}
	r.namespaces[0].cookie = 0
	if !r.lived(inode, "/proc/self/ns/net") {
		t.Error("without a cookie the number has to count")
	}
}
