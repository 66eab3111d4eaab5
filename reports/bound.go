package reports

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"tenwalls.dev/harness/hostile"
)

// Bounds on the two parts of a report whose size a hostile guest chooses. Both
// are of the encoded form and over all trials together, so that the whole
// stays under 2 MB for about 100 trials.
const (
	maxClaims  = 512 << 10 // Trial.Claims
	maxFound   = 128 << 10 // Observation.Found
	maxWords   = 512       // bytes of one claim's note or call, except a reading's
	maxFinding = 256       // bytes of one line of Observation.Found
)

// Bound keeps the evidence within its bounds. It must be called after
// collecting and before judging, so that what is judged and what is written
// are the same. Trials that need little leave their share to those that need
// more; within a trial the first claim of each event is kept before the rest,
// an effect that happened before everything else, and the order in which the
// claims came stays. What is dropped is counted in Said.Beyond.
func Bound(trials []Trial) {
	claims := make([]int, len(trials))
	found := make([]int, len(trials))
	for i := range trials {
		t := &trials[i]
		t.Claims = slices.Clone(t.Claims)
		for j := range t.Claims {
			shorten(&t.Claims[j])
			claims[i] += claimSize(t.Claims[j])
		}
		t.Observations = slices.Clone(t.Observations)
		for j := range t.Observations {
			o := &t.Observations[j]
			o.Found = slices.Clone(o.Found)
			for k := range o.Found {
				o.Found[k] = prefix(o.Found[k], maxFinding)
				found[i] += textSize(o.Found[k])
			}
		}
	}
	claims, found = shares(claims, maxClaims), shares(found, maxFound)
	for i := range trials {
		boundClaims(&trials[i], claims[i])
		boundFound(&trials[i], found[i])
	}
}

// shares divides total among needs: nobody gets more than it needs, and those
// who need more than an equal share get equal shares of what is left.
func shares(needs []int, total int) []int {
	byNeed := make([]int, len(needs))
	for i := range byNeed {
		byNeed[i] = i
	}
	slices.SortStableFunc(byNeed, func(a, b int) int { return cmp.Compare(needs[a], needs[b]) })
	out := make([]int, len(needs))
	for n, i := range byNeed {
		out[i] = min(needs[i], total/(len(needs)-n))
		total -= out[i]
	}
	return out
}

// ranks orders the events by what a judge cannot do without.
var ranks = []hostile.Event{
	hostile.Happened, hostile.Stopped, hostile.Reached, hostile.Failed, hostile.Reading, hostile.Progress,
}

// boundClaims keeps what fits in share, in the order of importance.
func boundClaims(t *Trial, share int) {
	order := make([]int, len(t.Claims))
	again := make([]bool, len(t.Claims)) // a claim whose event came before
	seen := map[hostile.Event]bool{}
	for i, c := range t.Claims {
		order[i], again[i] = i, seen[c.Event]
		seen[c.Event] = true
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if again[a] != again[b] {
			if again[b] {
				return -1
			}
			return 1
		}
		return cmp.Compare(slices.Index(ranks, t.Claims[a].Event), slices.Index(ranks, t.Claims[b].Event))
	})
	var kept []int
	for _, i := range order {
		size := claimSize(t.Claims[i])
		effect := t.Claims[i].Event == hostile.Happened && !again[i]
		if size <= share || effect { // whatever else has no room, a fallen wall is told
			kept = append(kept, i)
			share -= size
		}
	}
	slices.Sort(kept)
	claims := make([]hostile.Claim, 0, len(kept))
	for _, i := range kept {
		claims = append(claims, t.Claims[i])
	}
	t.Said.Beyond += len(t.Claims) - len(claims)
	t.Claims = claims
}

// boundFound keeps the first lines that fit in share.
func boundFound(t *Trial, share int) {
	for i := range t.Observations {
		o := &t.Observations[i]
		for k, f := range o.Found {
			share -= textSize(f)
			if share < 0 && k > 0 { // the first line of each stays, so that something found never looks like nothing
				o.Found = append(o.Found[:k], "... and more")
				break
			}
		}
	}
}

// shorten cuts the words that no verdict depends on. A reading's note is the
// value that was read.
func shorten(c *hostile.Claim) {
	if c.Event != hostile.Reading {
		c.Note = prefix(c.Note, maxWords)
	}
	c.Call = prefix(c.Call, maxWords)
}

// prefix is s cut to at most limit bytes, between runes.
func prefix(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit - len(ellipsis)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]) + ellipsis // the clone lets go of the long one
}

// claimSize is about how many bytes a claim takes in report.json.
func claimSize(c hostile.Claim) int {
	const names = 300 // of its fields, with their indentation and the short words
	return names + textSize(c.Note) + textSize(c.Call)
}

// textSize is how many bytes a line with s takes in report.json at most. It
// does not encode: a hostile guest would make that dear.
func textSize(s string) int {
	n := 16 // quotes, comma, line break and indentation
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			n += 2
		case r < ' ' || mustEscape(r):
			n += 6 * len(utf16.AppendRune(nil, r))
		default:
			n += utf8.RuneLen(r)
		}
	}
	return n
}
