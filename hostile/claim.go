package hostile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Event is what a claim says. The list is closed.
type Event string

// Events.
const (
	Reached  Event = "reached"  // the next act is the attempt itself; everything it needs is in place
	Stopped  Event = "refused"  // the act was refused: Kind and Place say how and where
	Happened Event = "happened" // the act succeeded: the wall fell
	Progress Event = "progress" // a number on the way (bytes so far, tasks so far)
	Failed   Event = "failed"   // the payload could not make the attempt; Note says why
	Reading  Event = "reading"  // a value read inside (identity, capabilities, mount table); Note carries it
)

// Bounds on what is read from a guest. Whatever is beyond is counted, not kept.
const (
	MaxClaimBytes = 4 << 10 // one line
	MaxClaims     = 2048    // one job
	MaxNote       = 2 << 10 // Claim.Note
)

// Claim is one line of JSON that the payload printed. It comes from inside a
// sandbox that may be broken: where a host observation exists, a claim is never
// the authority.
type Claim struct {
	Nonce   string `json:"nonce"`           // the run's, so that a claim of another run is worth nothing
	Attempt string `json:"attempt"`         // name in the catalogue
	Route   string `json:"route"`           // name in the catalogue
	Event   Event  `json:"event"`           //
	Kind    Kind   `json:"kind,omitempty"`  // with refused
	Place   Place  `json:"place,omitempty"` // with refused: where the payload saw it happen, and Note says how it knows
	Call    string `json:"call,omitempty"`  // the system call or act, for example "socket(AF_INET, SOCK_STREAM)"
	Count   int64  `json:"count,omitempty"` // bytes, tasks or numbers, as the route says
	Note    string `json:"note,omitempty"`  // in words, at most MaxNote bytes
}

// Claims are the claims of one job, with what was thrown away counted.
type Claims struct {
	Claims  []Claim `json:"claims,omitempty"`
	Foreign int     `json:"foreign,omitempty"` // well-formed claims without this run's nonce, or of a route not asked
	Noise   int     `json:"noise,omitempty"`   // lines that are no claim
	Beyond  int     `json:"beyond,omitempty"`  // claims over MaxClaims
}

// ParseClaims reads the claims of one job from r, which is hostile: every line
// is bounded, unknown fields, words and trailing bytes make it noise, and a
// claim whose nonce is not the run's is counted as foreign and dropped.
// asked tells whether the job was asked for that attempt and route. It fails
// only when r does.
func ParseClaims(r io.Reader, nonce string, asked func(attempt, route string) bool) (Claims, error) {
	var out Claims
	br := bufio.NewReaderSize(r, MaxClaimBytes)
	for {
		line, err := br.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = br.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return out, fmt.Errorf("read claims: %w", err)
		}
		if line = bytes.TrimSuffix(line, []byte("\n")); long {
			out.Noise++
		} else if len(line) > 0 {
			out.add(line, nonce, asked)
		}
		if err != nil {
			return out, nil
		}
	}
}

func (c *Claims) add(line []byte, nonce string, asked func(attempt, route string) bool) {
	claim, err := parseClaim(line)
	switch {
	case err != nil:
		c.Noise++
	case nonce == "" || claim.Nonce != nonce || !asked(claim.Attempt, claim.Route):
		c.Foreign++
	case len(c.Claims) >= MaxClaims:
		c.Beyond++
	default:
		c.Claims = append(c.Claims, claim)
	}
}

func parseClaim(line []byte) (Claim, error) {
	var c Claim
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Claim{}, fmt.Errorf("parse claim: %w", err)
	}
	if dec.InputOffset() != int64(len(line)) {
		return Claim{}, errors.New("parse claim: bytes after the object")
	}
	return c, c.validate()
}

func (c Claim) validate() error {
	switch c.Event {
	case Reached, Happened, Progress, Failed, Reading:
		if c.Kind != "" || c.Place != "" {
			return fmt.Errorf("claim %s: names a refusal", c.Event)
		}
	case Stopped:
		if !knownKind(c.Kind) || !knownPlace(c.Place) {
			return fmt.Errorf("claim refused: unknown kind %q or place %q", c.Kind, c.Place)
		}
	default:
		return fmt.Errorf("claim: unknown event %q", c.Event)
	}
	if len(c.Note) > MaxNote || len(c.Call) > MaxNote {
		return errors.New("claim: note too long")
	}
	return nil
}

// Of returns the claims of one route in the order in which they came.
func (c Claims) Of(attempt, route string) []Claim {
	var out []Claim
	for _, claim := range c.Claims {
		if claim.Attempt == attempt && claim.Route == route {
			out = append(out, claim)
		}
	}
	return out
}
