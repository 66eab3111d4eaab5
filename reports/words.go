package reports

import (
	"fmt"
	"strconv"
	"strings"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
)

// maxNoteShown bounds, in columns, what people are shown of one guest's note;
// the whole of it stands in report.json.
const maxNoteShown = 160

// label names the trial's attempt as the specs do: "step 5 processor".
func (t *Trial) label() string {
	if t.Step == 0 {
		return "contract " + Harmless(t.Attempt)
	}
	return fmt.Sprintf("step %d %s", t.Step, Harmless(t.Attempt))
}

// insideSaid is the claim in words.
func insideSaid(t *Trial) string {
	c := t.Claim
	if c == nil {
		switch {
		case t.By == ByHost:
			return "nobody to ask"
		case t.Said.Foreign > 0:
			return fmt.Sprintf("nothing of this run (%d foreign claims)", t.Said.Foreign)
		}
		return "nothing"
	}
	switch c.Event {
	case hostile.Stopped:
		return Harmless(hostile.Refusal{Kind: c.Kind, Place: c.Place}.String())
	case hostile.Happened:
		return withNote("it happened", c.Note)
	case hostile.Failed:
		return withNote("could not try", c.Note)
	case hostile.Reached:
		if t.By == ByRunner { // the refusal ends the job: nothing more can come
			return "reached"
		}
		return "reached, then nothing"
	case hostile.Reading:
		return withNote("read", c.Note)
	default:
		return withNote(Harmless(string(c.Event)), c.Note)
	}
}

func withNote(s, note string) string {
	if note == "" {
		return s
	}
	return s + ": " + short(note, maxNoteShown)
}

// hostSaw is what the host has to say about the trial, what went wrong first.
func hostSaw(t *Trial) string {
	var wrong, right []string
	for _, c := range t.Controls {
		if !c.Passed {
			wrong = append(wrong, Harmless(c.Observer)+" failed its control")
		}
	}
	if t.Ended != nil && t.By == ByRunner {
		right = append(right, "ended by "+Harmless(t.Ended.Refusal.String()))
	}
	for _, w := range t.Wants {
		said, met := wantSeen(w, t.Observations)
		if met {
			right = append(right, said)
		} else {
			wrong = append(wrong, said)
		}
	}
	for _, o := range t.Observations {
		if len(o.Found) > 0 {
			wrong = append(wrong, Harmless(o.Observer)+" found "+short(o.Found[0], maxNoteShown))
		}
	}
	if len(wrong)+len(right) == 0 {
		return "nothing recorded"
	}
	return strings.Join(append(wrong, right...), "; ")
}

// wantSeen tells one want's value as it was read, and whether it was as wanted.
func wantSeen(w Want, all []observers.Observation) (said string, met bool) {
	name := Harmless(w.Observer)
	for _, o := range all {
		if o.Observer != w.Observer {
			continue
		}
		if o.Lost != "" {
			return name + " lost its window: " + short(o.Lost, maxNoteShown), false
		}
		r, ok := o.Values[w.Value]
		if !ok || o.Samples == 0 {
			continue
		}
		return reading(w.Value, w.Measured(r), r.Unit), w.Met(r)
	}
	return name + " read no " + Harmless(w.Value), false
}

// reading is one number with its name and unit: "0 packets", "cpu 2.003 s".
func reading(value string, n int64, unit string) string {
	value, unit = Harmless(value), Harmless(unit)
	switch {
	case unit == "ns":
		return value + " " + strconv.FormatFloat(float64(n)/1e9, 'f', 3, 64) + " s"
	case unit == "bytes" && n != 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%s %d MiB", value, n>>20)
	case unit == value:
		return fmt.Sprintf("%d %s", n, unit)
	case unit == "" || unit == "count":
		return fmt.Sprintf("%s %d", value, n)
	}
	return fmt.Sprintf("%s %d %s", value, n, unit)
}

// seconds prints milliseconds as seconds: "2.003".
func seconds(ms int64) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64)
}

// badness orders verdicts, worst first in meaning and largest in number. A word
// that is no verdict is as bad as broken: nobody knows what it stands for.
func badness(v hostile.Verdict) int {
	switch v {
	case hostile.Held:
		return 0
	case hostile.Silent:
		return 1
	case hostile.Blind:
		return 2
	case hostile.Misnamed:
		return 4
	case hostile.Fell:
		return 5
	default:
		return 3
	}
}

// lifts joins the names of the lifted walls.
func lifts(t *Trial) string {
	names := make([]string, len(t.Lifts))
	for i, l := range t.Lifts {
		names[i] = Harmless(string(l))
	}
	return strings.Join(names, ", ")
}

// Worse tells whether a is a worse verdict than b: fell before misnamed, broken,
// blind, silent and held.
func Worse(a, b hostile.Verdict) bool { return badness(a) > badness(b) }
