package reports

import (
	"fmt"
	"strings"

	"tenwalls.dev/harness/hostile"
)

const (
	gap          = "  "
	stepWidth    = 4
	attemptWidth = 11 // "credentials"
	verdictWidth = 17 // "misnamed 12 of 13"
	maxCellLines = 4  // what goes on stands below the table, or in report.json
)

// cell texts of one attempt, all harmless.
type row struct {
	step, attempt, expected, inside, host, verdict string
}

// rowOf is the attempt as its governing trial tells it.
func rowOf(g group) (row, *Trial) {
	t, same := g.governing()
	r := row{
		step:     "-", // a contract check beyond the ten
		attempt:  short(g.attempt, maxNoteShown),
		expected: Harmless(t.Expected.String()),
		inside:   cut(insideSaid(t), maxNoteShown),
		host:     cut(hostSaw(t), maxNoteShown),
		verdict:  short(string(t.Verdict), maxNoteShown),
	}
	if g.step > 0 {
		r.step = fmt.Sprint(g.step)
	}
	switch n := len(g.trials); {
	case n > 1 && t.Verdict == hostile.Held: // the worst, so it is all of them
		r.verdict = fmt.Sprintf("all %d held", n)
	case n > 1:
		r.verdict += fmt.Sprintf(" %d of %d", same, n)
	}
	return r, t
}

// table writes the rows side by side; long cells go on in the next lines.
func (p *page) table(groups []group) {
	left := p.width - stepWidth - attemptWidth - verdictWidth - 5*len(gap)
	each := left / 3
	widths := []int{stepWidth, attemptWidth, each, each, left - 2*each, verdictWidth}
	cells := func(c ...string) {
		p.line(strings.Join(c, gap))
	}
	head := []string{"step", "attempt", "expected", "inside said", "host saw", "verdict"}
	rule := make([]string, len(widths))
	for i, w := range widths {
		head[i] = pad(head[i], w)
		rule[i] = strings.Repeat("-", w)
	}
	cells(head...)
	cells(rule...)
	for _, g := range groups {
		r, t := rowOf(g)
		columnsOf := make([][]string, len(widths))
		height := 0
		for i, s := range []string{r.step, r.attempt, r.expected, r.inside, r.host, r.verdict} {
			columnsOf[i] = atMost(maxCellLines, wrap(s, widths[i]), widths[i])
			height = max(height, len(columnsOf[i]))
		}
		for n := range height {
			out := make([]string, len(widths))
			for i, c := range columnsOf {
				if n < len(c) {
					out[i] = c[n]
				}
				if i < len(widths)-1 { // the last needs no padding, which colour would hide from trimming
					out[i] = pad(out[i], widths[i])
				}
			}
			out[len(out)-1] = p.painted(out[len(out)-1], t.Verdict)
			cells(out...)
		}
	}
}

// blocks writes the rows one below the other, for a narrow terminal.
func (p *page) blocks(groups []group) {
	for i, g := range groups {
		r, t := rowOf(g)
		if i > 0 {
			p.line("")
		}
		name := "contract " + r.attempt
		if g.step > 0 {
			name = "step " + r.step + " " + r.attempt
		}
		if columns(name)+1+columns(r.verdict) > p.width {
			p.text("", name+" "+r.verdict)
		} else {
			p.line(pad(name, p.width-columns(r.verdict)) + p.painted(r.verdict, t.Verdict))
		}
		p.text("  expected  ", r.expected)
		p.text("  inside    ", r.inside)
		p.text("  host      ", r.host)
	}
}

// atMost keeps the first n lines of a cell and marks that there were more.
func atMost(n int, lines []string, width int) []string {
	if len(lines) <= n {
		return lines
	}
	last := fill(lines[n-1], width-len(ellipsis)) + ellipsis
	return append(lines[:n-1:n-1], last)
}

// pad fills s up to w columns.
func pad(s string, w int) string {
	return s + strings.Repeat(" ", max(0, w-columns(s)))
}
