package reports

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Line is one trial in one line, for a log that is followed as it grows:
//
//	held      step 5 processor: relay: cpu cap at the processor cap (2.003 s)
//
// A trial that did not hold carries its reason. There is no line break at the end.
func Line(t *Trial) string {
	line := fmt.Sprintf("%-9s %s: %s: %s (%s s)", short(string(t.Verdict), maxNoteShown), t.label(),
		short(t.Route, maxNoteShown), Harmless(t.Expected.String()), seconds(t.DurationMS))
	if badness(t.Verdict) == 0 {
		return line
	}
	return line + ": " + short(t.Reason, maxShown)
}

// Lines writes the plain form of the report for a CI log: one [Line] a trial,
// in the report's order, then the outcome.
func Lines(w io.Writer, r *Report) error {
	var b strings.Builder
	for _, g := range grouped(r) {
		for _, t := range g.trials {
			b.WriteString(Line(t) + "\n")
		}
	}
	b.WriteString(summary(r) + "\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	return nil
}

// ProofLine says when the checks of the run were last shown able to fail.
func ProofLine(r *Report) string {
	if r.Proof == nil {
		return "no whole proof of this host, harness, runtime and configuration: harness prove shows that every check can fail"
	}
	return fmt.Sprintf("every check was shown able to fail %s ago: %s, %d mutants killed, %d not applicable here",
		(time.Duration(r.Proof.AgeS) * time.Second).String(), short(r.Proof.Proof, maxNoteShown), r.Proof.Killed, r.Proof.NotApplicable)
}

// summary is the outcome and how many trials got which verdict, worst first:
// "refused: 1 fell, 2 misnamed, 94 held of 97".
func summary(r *Report) string {
	counts := map[string]int{}
	var words []string
	for level := badness("fell"); level >= 0; level-- {
		for _, t := range r.Trials {
			v := short(string(t.Verdict), maxNoteShown)
			if badness(t.Verdict) != level {
				continue
			}
			if counts[v]++; counts[v] == 1 {
				words = append(words, v)
			}
		}
	}
	for i, v := range words {
		words[i] = fmt.Sprintf("%d %s", counts[v], v)
	}
	s := short(string(r.Outcome), maxNoteShown) + ": "
	if len(words) == 0 {
		s += "0 trials"
	} else {
		s += fmt.Sprintf("%s of %d", strings.Join(words, ", "), len(r.Trials))
	}
	if r.Interrupted != "" {
		s += "; interrupted: " + short(r.Interrupted, maxNoteShown)
	}
	if r.Unproven != "" {
		s += "; " + short(r.Unproven, maxShown)
	}
	if !r.Complete {
		s += "; not every trial of the set was asked for, so it qualifies nothing"
	}
	return s
}
