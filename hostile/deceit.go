package hostile

import "strings"

// Deceit is how a mutated payload plays its part instead of making the attempt
// honestly. It is ordered by [ParamDeceit] and serves one purpose: to show that
// the suite notices a payload that does not do, or does not say, what it should.
// The list is closed.
type Deceit string

// Deceits.
const (
	DeceitIdle      Deceit = "idle"      // does nothing, as true(1), and exits with 0 after the lingering it was ordered
	DeceitUnreached Deceit = "unreached" // claims the expected refusal and never reaches the act
	DeceitNameless  Deceit = "nameless"  // makes the attempt and claims without the run's nonce
	DeceitLie       Deceit = "lie"       // makes the attempt and claims the expected refusal, whatever came of it
)

// Deceits lists them.
func Deceits() []Deceit {
	return []Deceit{DeceitIdle, DeceitUnreached, DeceitNameless, DeceitLie}
}

// Parameters of an order that make the payload deceive.
const (
	ParamDeceit = "deceit"
	// ParamExpected, followed by "attempt/route", is the refusal that a
	// deceitful claim names, as [Refusal.Encode] writes it.
	ParamExpected = "expected:"
)

// Encode writes a refusal for [ParseRefusal]: kind and place with a bar
// between.
func (r Refusal) Encode() string { return string(r.Kind) + "|" + string(r.Place) }

// ParseRefusal reads what [Refusal.Encode] wrote; ok is false for anything
// else.
func ParseRefusal(s string) (r Refusal, ok bool) {
	kind, place, ok := strings.Cut(s, "|")
	if !ok || kind == "" || place == "" {
		return Refusal{}, false
	}
	return Refusal{Kind: Kind(kind), Place: Place(place)}, true
}
