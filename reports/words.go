package reports

import (
	"fmt"
	"strconv"
	"strings"

	"tenwalls.dev/harness/hostile"
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
			return "(the host's word alone)"
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
		if t.By != ByClaim { // nothing more is due: the refusal ends the job, or the host has to see it
			return "reached"
		}
		return "reached, then nothing"
	case hostile.Progress: // it went on until the job ended
		return fmt.Sprintf("reached, last count %d", c.Count)
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
