package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
)

// sight is what one observer has to say, in words.
type sight struct {
	observer string
	words    []string
}

// sights are in the order in which they came, each word once.
type sights []sight

func (s *sights) add(observer, words string) {
	i := slices.IndexFunc(*s, func(o sight) bool { return o.observer == observer })
	if i < 0 {
		*s = append(*s, sight{observer: observer})
		i = len(*s) - 1
	}
	if o := &(*s)[i]; !slices.Contains(o.words, words) {
		o.words = append(o.words, words)
	}
}

// String joins them: "oom: events 1, own 1; memory: peak 256 MiB".
func (s sights) String() string {
	var out []string
	for _, o := range s {
		out = append(out, strings.TrimPrefix(o.observer+": ", ": ")+strings.Join(o.words, ", "))
	}
	return strings.Join(out, "; ")
}

// hostSaw is what the host has to say about the trial, what went wrong first.
// What an observer found beside what was wanted of it is told only when that was
// not met: an open of a canary by a mere walk, say, is beside no read of it.
func hostSaw(t *Trial) string {
	var wrong, right sights
	for _, c := range t.Controls {
		if !c.Passed {
			wrong.add(Harmless(c.Observer), "failed its control")
		}
	}
	if t.Ended != nil && t.By == ByRunner {
		right.add("", ended(t.Ended))
	}
	unmet, wanted := map[string]bool{}, map[string]bool{}
	for _, met := range []bool{false, true} { // a reading that is both is told as wrong
		for _, w := range t.Wants {
			wanted[w.Observer] = true
			observer := Harmless(w.Observer)
			said, ok := wantSeen(w, t.Observations)
			if w.Value == w.Observer {
				said = strings.TrimPrefix(said, Harmless(w.Value)+" ") // "routes: 0"
			}
			switch {
			case ok != met:
			case !ok:
				unmet[w.Observer] = true
				wrong.add(observer, said)
			default:
				right.add(observer, said)
			}
		}
	}
	for _, o := range t.Observations {
		if len(o.Found) > 0 && (unmet[o.Observer] || !wanted[o.Observer]) {
			wrong.add(Harmless(o.Observer), "found "+short(o.Found[0], maxNoteShown))
		}
	}
	for _, o := range right { // each observer once, those with something wrong first
		for _, words := range o.words {
			wrong.add(o.observer, words)
		}
	}
	switch {
	case len(wrong) > 0:
		return wrong.String()
	case t.By == ByClaim && len(t.Wants) == 0 && t.Trouble == "":
		return "nothing: the place is inside"
	}
	return "nothing recorded"
}

// ended is how the runner says that the job ended.
func ended(e *Ended) string {
	switch e.Refusal.Kind {
	case "":
		return "ended as " + short(e.Reason, maxNoteShown)
	case hostile.InForce: // no cap was met, and what the job left was within its bounds
		return "ended by itself"
	}
	return "ended by " + Harmless(e.Refusal.String())
}

// wantSeen tells one want's value as it was read, without the observer's name,
// and whether it was as wanted.
func wantSeen(w Want, all []observers.Observation) (said string, met bool) {
	for _, o := range all {
		if o.Observer != w.Observer {
			continue
		}
		if o.Lost != "" {
			return "lost its window: " + short(o.Lost, maxNoteShown), false
		}
		r, ok := o.Values[w.Value]
		if !ok || o.Samples == 0 {
			continue
		}
		return reading(w.Value, w.Measured(r), r.Unit), w.Met(r)
	}
	return "read no " + Harmless(w.Value), false
}

// reading is one number with its name and unit: "0 packets", "cpu 2.003 s".
func reading(value string, n int64, unit string) string {
	value, unit = Harmless(value), Harmless(unit)
	if unit == value && unit != "ns" && unit != "bytes" {
		return fmt.Sprintf("%d %s", n, unit)
	}
	if unit == "processes" || unit == "packets" { // its name tells what is counted
		unit = ""
	}
	return value + " " + Amount(n, unit)
}

// Amount is a number with its unit, for people: "2.003 s" of ns, "256 MiB 4 KiB"
// of bytes, the number alone of "count" and of no unit. Bytes are exact: one page
// beyond a limit shows.
func Amount(n int64, unit string) string {
	switch {
	case unit == "ns":
		return strconv.FormatFloat(float64(n)/1e9, 'f', 3, 64) + " s"
	case unit == "bytes" && n != 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case unit == "bytes" && n > 1<<20 && n%(1<<10) == 0:
		return fmt.Sprintf("%d MiB %d KiB", n>>20, n>>10&1023)
	case unit == "bytes" && n > 0 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	case unit == "" || unit == "count":
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%d %s", n, Harmless(unit))
}
