package reports

import (
	"fmt"
	"io"
	"strings"

	"tenwalls.dev/harness/hostile"
)

// TableOptions says how a report is shown.
type TableOptions struct {
	Width int      // columns of the terminal; 0 means 80, and less than 40 is taken as 40
	Color bool     // colour the verdicts (SGR); the caller heeds NO_COLOR
	Files []string // paths of what was written, shown last
}

const (
	usualWidth = 80
	leastWidth = 40
	tableWidth = 72 // below it the columns are too narrow to read and each attempt becomes a block
)

// Table writes the report for people: what was run where, one row an attempt,
// then each trial that did not hold, what this cannot show, and where the files
// are. In a row the worst verdict governs: "fell 1 of 12" says that one of
// twelve routes fell, and the row shows that one. No line is wider than the width, and
// nothing of the guest's reaches the terminal but text (see [Harmless]).
func Table(w io.Writer, r *Report, o TableOptions) error {
	if o.Width == 0 {
		o.Width = usualWidth
	}
	p := &page{width: max(o.Width, leastWidth), color: o.Color}
	p.title(r)
	groups := grouped(r)
	if p.width >= tableWidth {
		p.table(groups)
	} else {
		p.blocks(groups)
	}
	p.line("")
	p.text("", summary(r))
	p.text("", ProofLine(r))
	for _, g := range groups {
		for _, t := range g.trials {
			if t.Verdict != hostile.Held {
				p.trial(t)
			}
		}
	}
	p.list("Otherwise in force than in the last good run", r.Drift)
	p.list("What this cannot show", r.CannotShow)
	p.list("Files", o.Files)
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// page collects lines of at most width columns.
type page struct {
	b     strings.Builder
	width int
	color bool
}

func (p *page) line(s string) {
	p.b.WriteString(strings.TrimRight(s, " "))
	p.b.WriteByte('\n')
}

// text wraps s behind a first indent, and goes on below it.
func (p *page) text(indent, s string) {
	n := columns(indent)
	for i, l := range wrap(s, p.width-n) {
		if i > 0 {
			indent = strings.Repeat(" ", n)
		}
		p.line(indent + l)
	}
}

// Title is what was run where, in two harmless lines: run and profile, then
// runtime, kernel, architecture and cgroup version.
func Title(r *Report) []string {
	return []string{
		"tenwalls " + short(r.Run, maxNoteShown) + ", profile " + short(r.Profile, maxNoteShown),
		fmt.Sprintf("runsc %s (%s) on Linux %s, %s, cgroup v%d", short(r.Runtime.Version, maxNoteShown),
			short(r.Runtime.Platform, maxNoteShown), short(r.Host.Kernel, maxNoteShown), short(r.Host.Arch, maxNoteShown), r.Host.CgroupVersion),
	}
}

func (p *page) title(r *Report) {
	for _, s := range Title(r) {
		p.text("", s)
	}
	p.line("")
}

func (p *page) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	p.line("")
	p.line(title)
	for _, s := range items {
		p.text("  ", Harmless(s))
	}
}

// trial tells why one trial did not hold.
func (p *page) trial(t *Trial) {
	p.line("")
	p.text("", t.label()+": "+short(t.Route, maxNoteShown)+": "+short(string(t.Verdict), maxNoteShown))
	for _, row := range [][2]string{
		{"wall", Harmless(string(t.Expected.Place))},
		{"expected", t.Expected.String()},
		{"inside", cut(insideSaid(t), maxShown)},
		{"host", cut(hostSaw(t), maxShown)},
		{"lifted", lifts(t)},
		{"reason", t.Reason},
		{"trouble", t.Trouble},
	} {
		if row[1] != "" {
			p.text(fmt.Sprintf("  %-9s ", row[0]), short(row[1], maxShown))
		}
	}
}

// SGR parameters (ECMA-48, 8.3.117).
const (
	green  = "32"
	red    = "31"
	yellow = "33"
)

// painted colours s by its verdict; s itself takes no more columns by it.
func (p *page) painted(s string, v hostile.Verdict) string {
	if !p.color || s == "" {
		return s
	}
	paint := yellow
	switch v {
	case hostile.Held:
		paint = green
	case hostile.Fell, hostile.Misnamed:
		paint = red
	}
	return "\x1b[" + paint + "m" + s + "\x1b[0m"
}
