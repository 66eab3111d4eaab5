package main

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// childTimeout bounds one call in a throwaway child.
const childTimeout = time.Second

// ownNamespaces makes a child's capabilities full, in namespaces of its own
// (user_namespaces(7)). It is no way out: it is how to hear the filter where the
// kernel itself says EPERM for want of a capability.
const ownNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET

// saysEPERM is how a filter that refuses by ERRNO is known.
const saysEPERM = "the same call says EPERM also with arguments and capabilities to which the kernel has another answer"

// filterAnswer tells whether the entry-point filter refuses that system call,
// how (EPERM or SIGSYS), and how that is known. A filter decides on the number
// alone, before the kernel looks at any argument. So the call is made with
// arguments that the kernel itself answers otherwise than by EPERM (all ones:
// no such descriptor, address or family), and again with every capability in
// namespaces of its own; what says EPERM to both is the filter. It is made in
// throwaway children, because a filter may end its caller.
func filterAnswer(trap uintptr) (refused bool, how hostile.Kind, note string) {
	answer := askFilter([]uintptr{trap})[0]
	switch {
	case answer.failed != nil:
		return false, hostile.Other, "the filter could not be asked: " + answer.failed.Error()
	case answer.signal != 0:
		return true, hostile.SIGSYS, "the filter ended a throwaway child by " + unix.SignalName(answer.signal)
	case answer.undecided:
		return false, hostile.Other, "EPERM, which for this call comes from the kernel as well"
	case answer.refused:
		return true, hostile.EPERM, saysEPERM
	}
	return false, hostile.Other, "with arguments that the kernel itself refuses the call says " + errnoName(answer.errno)
}

// filterVerdict is what the filter said to one call.
type filterVerdict struct {
	ending
	refused   bool // by EPERM, or by the signal
	undecided bool // EPERM, and the kernel itself says it to everybody
}

// askFilter asks the filter about many calls at once.
func askFilter(traps []uintptr) []filterVerdict {
	out := make([]filterVerdict, len(traps))
	var again []int
	for i, end := range tryCalls(0, harmlessRows(traps), childTimeout) {
		out[i].ending = end
		out[i].refused = end.signal == unix.SIGSYS || end.signal == unix.SIGKILL
		if !out[i].refused {
			out[i].signal = 0
		}
		if end.errno == unix.EPERM {
			again = append(again, i)
		}
	}
	privileged := make([]uintptr, len(again))
	for j, i := range again {
		privileged[j] = traps[i]
	}
	for j, end := range tryPrivileged(privileged) {
		v := &out[again[j]]
		switch {
		case !wantsCapability(traps[again[j]]):
			v.refused = true // whatever else stands in the way of new namespaces
		case end.failed != nil, end.errno == unix.EPERM && deaf(traps[again[j]]):
			v.undecided = true
		case end.errno == unix.EPERM:
			v.refused = true
		}
	}
	return out
}

// tryPrivileged makes the calls with every capability in namespaces of their
// own, where the filter lets somebody make them; each has failed where not.
func tryPrivileged(traps []uintptr) []ending {
	rows := harmlessRows(traps)
	if len(rows) == 0 {
		return nil
	}
	// In a throwaway child first: a filter may end whoever asks.
	end := tryCalls(0, []callRow{{trap: unix.SYS_CLONE, args: [6]uintptr{ownNamespaces | unix.CLONE_VM | uintptr(unix.SIGCHLD)}, twice: 1}}, childTimeout)[0]
	if end == (ending{}) {
		return tryCalls(ownNamespaces, rows, childTimeout)
	}
	out := make([]ending, len(rows))
	for i := range out {
		out[i].failed = errNoNamespaces
	}
	return out
}

// errNoNamespaces is why a call could not be made with every capability.
var errNoNamespaces = errors.New("no namespaces of its own for a throwaway child")

func harmlessRows(traps []uintptr) []callRow {
	rows := make([]callRow, len(traps))
	for i, trap := range traps {
		rows[i] = callRow{trap: trap, args: harmless(trap)}
		if makesChild(trap) {
			rows[i].twice = 1
		}
	}
	return rows
}
