package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// Probe is what a route is given: its order, and the ways to claim.
type Probe struct {
	attempt, route string
	order          hostile.Order
	fd             int // claims go here, standard output
	copies         int // and here, unless it is -1
}

// Reached claims that the next act is the attempt itself and that everything it
// needs is shown to be in place. It is printed before the act, so that an act
// that ends the payload was still reached.
func (p *Probe) Reached(call, note string) {
	p.claim(hostile.Claim{Event: hostile.Reached, Call: call, Note: note})
}

// Refused claims that the act was refused. The note says how the place is
// known; where nothing tells, the place is hostile.Unknown.
func (p *Probe) Refused(kind hostile.Kind, place hostile.Place, call string, count int64, note string) {
	p.claim(hostile.Claim{Event: hostile.Stopped, Kind: kind, Place: place, Call: call, Count: count, Note: note})
}

// Happened claims that the act succeeded; count is bytes, tasks or numbers.
func (p *Probe) Happened(call string, count int64, note string) {
	p.claim(hostile.Claim{Event: hostile.Happened, Call: call, Count: count, Note: note})
}

// Progress claims a number on the way: what was reached when no more claims come.
func (p *Probe) Progress(count int64) {
	p.claim(hostile.Claim{Event: hostile.Progress, Count: count})
}

// Failed claims that the attempt could not be made, and why.
func (p *Probe) Failed(note string) {
	p.claim(hostile.Claim{Event: hostile.Failed, Note: note})
}

// Reading claims a value that was read inside.
func (p *Probe) Reading(note string) {
	p.claim(hostile.Claim{Event: hostile.Reading, Note: note})
}

// missingParam ends a route whose order lacks a parameter.
type missingParam string

func (m missingParam) Error() string { return fmt.Sprintf("the order has no parameter %q", string(m)) }

// Param returns a parameter of the order. A missing one ends the route with a
// failed claim.
func (p *Probe) Param(name string) string {
	v, ok := p.order.Params[name]
	if !ok || v == "" {
		panic(missingParam(name))
	}
	return v
}

// ParamOr returns a parameter of the order, or otherwise when it is missing.
func (p *Probe) ParamOr(name, otherwise string) string {
	if v := p.order.Params[name]; v != "" {
		return v
	}
	return otherwise
}

// Number returns a parameter that is a decimal number. A missing or ill-formed
// one ends the route with a failed claim.
func (p *Probe) Number(name string) int64 {
	n, err := strconv.ParseInt(p.Param(name), 10, 64)
	if err != nil {
		panic(fmt.Errorf("parameter %q: %w", name, err))
	}
	return n
}

// Scratch returns the writable folder. Nothing is made in it here: a quota that
// is tried to the byte must find it empty.
func (p *Probe) Scratch() string { return p.ParamOr("scratch", "/scratch") }

// claim prints one claim by one write(2), so that claims of several processes
// never mix within a line (pipe(7): up to PIPE_BUF, 4096 bytes, is atomic).
func (p *Probe) claim(c hostile.Claim) {
	c.Nonce, c.Attempt, c.Route = p.order.Nonce, p.attempt, p.route
	if deceitOf(p.order) != "" && !p.deceive(&c) {
		return
	}
	line := encodeClaim(c)
	whole := line
	for len(line) > 0 {
		n, err := unix.Write(p.fd, line)
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			break // nobody listens; there is nobody to tell
		}
		line = line[max(n, 0):]
	}
	// The harness may act on the copy at once, so the claim itself goes first.
	if p.copies >= 0 {
		_, _ = unix.Write(p.copies, whole)
	}
}

// encodeClaim returns the line, newline included, within the bounds that
// hostile.ParseClaims keeps. Notes are shortened, never dropped.
func encodeClaim(c hostile.Claim) []byte {
	bound := hostile.MaxNote
	for {
		c.Call, c.Note = shorten(c.Call, min(bound, 256)), shorten(c.Note, bound)
		line, err := json.Marshal(c)
		if err == nil && len(line) < hostile.MaxClaimBytes {
			return append(line, '\n')
		}
		if bound /= 2; bound == 0 { // the nonce or the names alone are too long
			return nil
		}
	}
}

// shorten returns valid text of at most bound bytes. What comes from a file may
// be no text, and JSON would make three bytes of each such byte.
func shorten(s string, bound int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= bound {
		return s
	}
	for s = s[:bound]; len(s) > 0; s = s[:len(s)-1] {
		if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n > 1 {
			break
		}
	}
	return s
}
