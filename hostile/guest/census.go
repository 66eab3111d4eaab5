package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("census", "all", countEntryPoints)
	_ = route("census", "by-signal", countBySignal)
)

// entryPoints is how many numbers are tried. No machine that runsc supports has
// a system call beyond it.
const entryPoints = 512

// countEntryPoints asks the filter about every number. The numbers that were let
// through come as ranges, so that the host compares them with the profile.
func countEntryPoints(p *Probe) {
	traps := make([]uintptr, entryPoints)
	for nr := range traps {
		traps[nr] = uintptr(nr)
	}
	p.count(fmt.Sprintf("system calls 0 to %d", entryPoints-1), traps, askFilter, "")
}

// countBySignal asks about the numbers to which the kernel itself says EPERM: each
// that the filter refuses costs a child, too much for all of them.
func countBySignal(p *Probe) {
	traps := slices.Sorted(slices.Values(capabilityFirst))
	numbers := make([]int, len(traps))
	for i, trap := range traps {
		numbers[i] = int(trap)
	}
	asked := ranges(numbers)
	p.count("system calls "+asked, traps, askBySignal, "asked "+asked+"; ")
}

// count asks the filter and claims what it said.
func (p *Probe) count(call string, traps []uintptr, ask func([]uintptr) []filterVerdict, before string) {
	p.Reached(call, "in throwaway children, with arguments that do nothing")
	var through, absent, undecided, lost []int
	refused := map[string][]int{}
	for i, v := range ask(traps) {
		nr := int(traps[i])
		switch {
		case v.failed != nil:
			lost = append(lost, nr)
		case v.undecided:
			undecided = append(undecided, nr)
		case v.refused && v.signal != 0:
			refused[unix.SignalName(v.signal)] = append(refused[unix.SignalName(v.signal)], nr)
		case v.refused:
			refused["EPERM"] = append(refused["EPERM"], nr)
		case v.errno == unix.ENOSYS:
			absent = append(absent, nr)
		default:
			through = append(through, nr)
		}
	}
	if len(lost) > 0 {
		p.Failed("numbers that could not be tried: " + ranges(lost))
	}
	var ways []string
	count := 0
	for _, how := range []string{"EPERM", "SIGSYS", "SIGKILL"} {
		count += len(refused[how])
		ways = append(ways, fmt.Sprintf("%s %d", how, len(refused[how])))
	}
	note := before + fmt.Sprintf("allowed %s; absent %s; refused %d; by %s; undecided %s",
		ranges(through), ranges(absent), count, strings.Join(ways, ", "), ranges(undecided))
	if count == 0 {
		p.Happened(call, int64(len(through)), note)
		return
	}
	p.Refused(hostile.InForce, hostile.EntryPointFilter, call, int64(count), note)
}

// askBySignal asks a filter that answers by a signal and by nothing else: whatever
// came back by an errno, EPERM too, was let through. So nothing is undecided.
func askBySignal(traps []uintptr) []filterVerdict {
	out := make([]filterVerdict, len(traps))
	for i, end := range tryCalls(0, harmlessRows(traps), childTimeout) {
		out[i].ending = end
		out[i].refused = end.signal == unix.SIGSYS || end.signal == unix.SIGKILL
	}
	return out
}

// ranges writes rising numbers as "0-1,3,5-9"; "none" when there are none.
func ranges(numbers []int) string {
	var b strings.Builder
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, numbers[i])
		if last > i {
			fmt.Fprintf(&b, "-%d", numbers[last])
		}
		i = last + 1
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}
