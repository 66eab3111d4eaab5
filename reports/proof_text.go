package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tenwalls.dev/harness/hostile"
)

// Matrix writes a proof for people: mutants down, attempts across, what became
// of each mutant at the end of its line; then each that was not killed as
// predicted, with the reason; then those that are not applicable here; then
// what a matrix cannot show, and where the files are. In a cell the worst
// verdict among the attempt's routes stands by its letter, with an exclamation
// mark where a trial of the attempt is not as predicted:
//
//	.  held     F  fell     M  misnamed     S  silent     B  blind     X  broken
//
// and nothing where no trial of the attempt was asked.
func Matrix(w io.Writer, p *Proof, o TableOptions) error {
	if o.Width == 0 {
		o.Width = usualWidth
	}
	pg := &page{width: max(o.Width, leastWidth), color: o.Color}
	pg.text("", fmt.Sprintf("%s on %s (Linux %s, cgroup v%d), %s on %s", p.Proof, short(p.Host.Name, maxNoteShown),
		short(p.Host.Kernel, maxNoteShown), p.Host.CgroupVersion, short(p.Runtime.Version, maxNoteShown), short(p.Runtime.Platform, maxNoteShown)))
	pg.line("")
	pg.matrix(p)
	pg.line("")
	pg.text("", proofSummary(p))
	for _, t := range p.Baseline {
		if t.Verdict != hostile.Held {
			pg.text("  baseline  ", short(t.ID, maxNoteShown)+" "+short(string(t.Verdict), maxNoteShown)+" with nothing mutated: "+short(t.Reason, maxShown))
		}
	}
	for _, m := range p.Mutants {
		if m.Killing != Killed && m.Killing != NotApplicable {
			pg.line("")
			pg.text("", short(string(m.Killing), maxNoteShown)+": "+short(m.Name, maxNoteShown)+": "+short(m.Title, maxShown))
			pg.text("  ", cut(Harmless(m.Reason), maxMispredicted))
		}
	}
	var lacking []string
	for _, m := range p.Mutants {
		if m.Killing == NotApplicable {
			lacking = append(lacking, short(m.Name, maxNoteShown)+": "+short(m.Reason, maxShown))
		}
	}
	pg.list("Not applicable on this host", lacking)
	pg.list("What this cannot show", p.CannotShow)
	pg.list("Files", o.Files)
	if _, err := io.WriteString(w, pg.b.String()); err != nil {
		return fmt.Errorf("write matrix: %w", err)
	}
	return nil
}

// maxMispredicted bounds, in columns, what is shown of why a line is otherwise.
const maxMispredicted = 1200

// attemptsOf are the columns: the attempts that any line asked, the ten first.
func (p *Proof) attemptsOf() (names, heads []string) {
	seen := map[string]bool{}
	for _, t := range p.Baseline {
		seen[t.Attempt] = true
	}
	for _, m := range p.Mutants {
		for _, t := range m.Trials {
			seen[t.Attempt] = true
		}
	}
	beyond := 0 // contract checks so far
	for _, a := range hostile.Catalogue() {
		if !seen[a.Name] {
			continue
		}
		delete(seen, a.Name)
		names = append(names, a.Name)
		head := fmt.Sprint(a.Step % 10)
		if a.Step == 0 {
			head = string(rune('a' + beyond))
			beyond++
		}
		heads = append(heads, head)
	}
	return names, heads
}

// columnWidth holds a letter and a mark.
const columnWidth = 2

func (pg *page) matrix(p *Proof) {
	attempts, heads := p.attemptsOf()
	nameWidth := columns("mutant")
	for _, m := range p.Mutants {
		nameWidth = max(nameWidth, columns(short(m.Name, maxNoteShown)))
	}
	cells := len(attempts) * columnWidth
	nameWidth = max(min(nameWidth, pg.width-cells-len(gap)-1-columns(string(Mispredicted))), columns("mutant"))
	var head strings.Builder
	for _, h := range heads {
		head.WriteString(pad(h, columnWidth))
	}
	pg.line(pad("mutant", nameWidth) + gap + head.String())
	row := func(name string, trials []ProofTrial, end string, v hostile.Verdict) {
		var b strings.Builder
		for _, a := range attempts {
			b.WriteString(pad(cellOf(a, trials), columnWidth))
		}
		pg.line(pad(fill(name, nameWidth), nameWidth) + gap + b.String() + gap[:1] + pg.painted(end, v))
	}
	row("(nothing mutated)", p.Baseline, "", hostile.Held)
	for _, m := range p.Mutants {
		v := hostile.Held
		if m.Killing != Killed && m.Killing != NotApplicable {
			v = hostile.Fell
		}
		row(short(m.Name, maxNoteShown), m.Trials, short(string(m.Killing), maxNoteShown), v)
	}
	pg.line("")
	pg.text("", ". held, F fell, M misnamed, S silent, B blind, X broken, ! not as predicted; columns: "+legend(attempts, heads))
}

func legend(names, heads []string) string {
	var out []string
	for i, n := range names {
		out = append(out, heads[i]+" "+n)
	}
	return strings.Join(out, ", ")
}

var letters = map[hostile.Verdict]string{
	hostile.Held: ".", hostile.Fell: "F", hostile.Misnamed: "M", hostile.Silent: "S", hostile.Blind: "B",
}

// cellOf is the worst verdict among the attempt's trials.
func cellOf(attempt string, trials []ProofTrial) string {
	worst, asked, otherwise := hostile.Held, false, false
	for _, t := range trials {
		if t.Attempt != attempt {
			continue
		}
		asked = true
		otherwise = otherwise || t.Verdict != t.Predicted
		if badness(t.Verdict) > badness(worst) {
			worst = t.Verdict
		}
	}
	if !asked {
		return ""
	}
	letter, ok := letters[worst]
	if !ok {
		letter = "X"
	}
	if otherwise {
		letter += "!"
	}
	return letter
}

// MutantLine is one mutant in one line, for a log that is followed as it grows:
//
//	killed         canary-missing: 13 of 97 trials turned, each as predicted (5.023 s)
func MutantLine(m *Mutant) string {
	return fmt.Sprintf("%-14s %s: %s (%s s)", short(string(m.Killing), maxNoteShown), short(m.Name, maxNoteShown), short(m.Reason, maxShown), seconds(m.DurationMS))
}

// proofSummary is the outcome and how many mutants became what.
func proofSummary(p *Proof) string {
	var words []string
	for _, k := range []Killing{Survived, Mispredicted, NotAsked, Killed, NotApplicable} {
		if n := p.Count(k); n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, k))
		}
	}
	s := short(string(p.Outcome), maxNoteShown) + ": "
	if len(words) == 0 {
		s += "no mutant was asked"
	} else {
		s += strings.Join(words, ", ") + fmt.Sprintf(" of %d", len(p.Mutants))
	}
	if slices.ContainsFunc(p.Baseline, func(t ProofTrial) bool { return t.Verdict != hostile.Held }) {
		s += "; with nothing mutated not every trial held, so that a fall shows nothing"
	}
	if p.Interrupted != "" {
		s += "; interrupted: " + short(p.Interrupted, maxNoteShown)
	}
	if !p.Complete {
		s += "; not every mutant of the set was asked, so it counts for no run"
	}
	return s
}

// ProofSummary is the last line of a log: outcome and counts.
func ProofSummary(p *Proof) string { return proofSummary(p) }
