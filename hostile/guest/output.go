package main

import (
	"bytes"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Parameters: "output_bytes", the granted output over both streams, and
// "bound". What is printed beside the claims are lines that are no claims. The
// count of every claim is bytes.
var (
	_ = route("disk", "stdout-flood", func(p *Probe) { flood(p, "write to standard output", unix.Stdout) })
	_ = route("disk", "stderr-flood", func(p *Probe) { flood(p, "write to standard error", unix.Stderr) })
	_ = route("output", "both-streams", func(p *Probe) { flood(p, "write to both streams in turn", unix.Stdout, unix.Stderr) })
)

// fillerLine is one line that is no claim.
var fillerLine = append(bytes.Repeat([]byte{'x'}, 4095), '\n')

// flood prints on the streams in turn until the job is ended or the bound is
// reached.
func flood(p *Probe, call string, fds ...int) {
	granted := p.Number("output_bytes")
	p.Reached(call, fmt.Sprintf("%d bytes granted over both streams", granted))
	var printed int64
	for i := 0; printed < bound(p, granted); i++ {
		n, errno := writeLine(fds[i%len(fds)])
		if printed += n; errno != 0 {
			place, note := nowhere(errno)
			p.Refused(kindOf(errno), place, call, printed, note)
			return
		}
	}
	p.Happened(call, printed, fmt.Sprintf("%d bytes granted over both streams", granted))
}

// writeLine prints a whole line, so that no claim after it is glued to it.
func writeLine(fd int) (printed int64, errno syscall.Errno) {
	for rest := fillerLine; len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return printed, errnoOf(err)
		}
		printed += int64(max(n, 0))
		rest = rest[max(n, 0):]
	}
	return printed, 0
}
