package main

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCallsInThrowawayChildren(t *testing.T) {
	got := tryCalls(0, []callRow{
		{trap: unix.SYS_GETPID},
		{trap: unix.SYS_CLOSE, args: harmless(unix.SYS_CLOSE)},
		{trap: unix.SYS_EXIT_GROUP},
		{trap: unix.SYS_PPOLL}, // waits for ever
		{trap: unix.SYS_SOCKET, args: harmless(unix.SYS_SOCKET)},
		{trap: 511},
	}, 100*time.Millisecond)
	want := []ending{{}, {errno: unix.EBADF}, {exited: true}, {blocked: true}, {errno: unix.EINVAL}, {errno: unix.ENOSYS}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("call %d ended as %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestChildrenHaveTheirOwnDescriptorsAndTheParentsMemory(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	var pin pinned
	defer pin.Unpin()
	text := pin.str("hello")
	got := tryCalls(0, []callRow{
		{trap: unix.SYS_WRITE, args: [6]uintptr{uintptr(fds[1]), text, 5}},
		{trap: unix.SYS_CLOSE, args: [6]uintptr{uintptr(fds[1])}},
		{trap: unix.SYS_CLOSE, args: [6]uintptr{uintptr(fds[1])}},
	}, time.Second)
	if got[0].errno != 0 || got[1].errno != 0 || got[2].errno != unix.EBADF {
		t.Errorf("endings: %+v", got)
	}
	buf := make([]byte, 8)
	if n, err := unix.Read(fds[0], buf); err != nil || string(buf[:n]) != "hello" {
		t.Errorf("read %q, %v", buf[:max(n, 0)], err)
	}
	if _, err := unix.Write(fds[1], []byte("x")); err != nil {
		t.Errorf("the child closed the parent's descriptor: %v", err)
	}
}

func TestForkedGrandchildrenEndAtOnce(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	var pin pinned
	defer pin.Unpin()
	rows := harmlessRows(forksOfMachine)
	rows = append(rows, callRow{trap: unix.SYS_WRITE, args: [6]uintptr{uintptr(fds[1]), pin.str("x"), 1}})
	for i, end := range tryCalls(0, rows, time.Second) {
		if end != (ending{}) {
			t.Errorf("row %d ended as %+v", i, end)
		}
	}
	unix.Close(fds[1]) // so that the pipe ends when the last grandchild has ended
	var written int
	for buf := make([]byte, 8); ; {
		n, err := unix.Read(fds[0], buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		written += n
	}
	if written != 1 {
		t.Errorf("%d children came to the call after the fork, not one", written)
	}
}
