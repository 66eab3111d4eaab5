package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/suites"
)

// show is how a run is told while it goes and when it ended.
type show struct {
	out   io.Writer // verdicts as they come, and the report
	live  io.Writer // one line that is redrawn; nil: none
	table bool      // the report as a table rather than as a summary below the lines
	color bool
	width int

	mu    sync.Mutex
	began time.Time
	last  suites.Progress
	bad   int // trials that were judged and did not hold
	stop  chan struct{}
	gone  sync.WaitGroup
}

// newShow looks at where the output goes. A terminal gets one redrawn line and
// then the table; a CI log or a file gets plain lines, each once. With --json
// stdout is the report's alone, and all this goes to stderr.
func newShow(json bool, stdout, stderr io.Writer) *show {
	s := &show{out: stdout, began: time.Now(), stop: make(chan struct{})}
	if json {
		s.out = stderr
	}
	_, width, isTerminal := terminal(s.out)
	if !isTerminal || os.Getenv("CI") != "" {
		return s
	}
	s.table, s.width = true, width
	if os.Getenv("TERM") == "dumb" { // no cursor movement, no colour
		return s
	}
	s.color = os.Getenv("NO_COLOR") == ""
	s.live = s.out
	s.gone.Go(s.tick)
	return s
}

// tick redraws once a second, so that a long attempt does not look like a hang.
func (s *show) tick() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		case <-s.stop:
			return
		}
	}
}

// progress is called by the run.
func (s *show) progress(p suites.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Stage == "" {
		p.Stage = s.last.Stage
	}
	s.last = p
	if p.Trial != nil && p.Trial.Verdict != hostile.Held {
		s.bad++
	}
	switch {
	case s.live != nil:
		s.draw()
	case s.table:
	case p.Trial != nil:
		fmt.Fprintln(s.out, reports.Line(p.Trial))
	}
}

func (s *show) draw() {
	if s.live != nil && s.last.Stage != "" {
		fmt.Fprint(s.live, erase+liveLine(s.last, s.bad, time.Since(s.began), s.width))
	}
}

// liveLine never fills the last column: there some terminals would wrap.
func liveLine(p suites.Progress, bad int, since time.Duration, width int) string {
	if width <= 0 {
		width = usualWidth
	}
	line := fmt.Sprintf("%s: %d of %d judged", p.Stage, p.Done, p.Total)
	if bad > 0 {
		line += fmt.Sprintf(", %d not held", bad)
	}
	line += fmt.Sprintf(", %d s", int(since.Seconds()))
	if len(line) >= width {
		line = line[:width-1]
	}
	return line
}

// clear takes the redrawn line away.
func (s *show) clear() {
	if s.live == nil {
		return
	}
	close(s.stop)
	s.gone.Wait()
	fmt.Fprint(s.live, erase)
	s.live = nil
}

// noFile stands where the files of a run are named when it was asked for none.
const noFile = "none was written: --out DIR writes report.json, junit.xml and attestation.json"

// report tells how the run ended.
func (s *show) report(r *reports.Report, files []string) error {
	if len(files) == 0 {
		files = []string{noFile}
	}
	if s.table {
		return reports.Table(s.out, r, reports.TableOptions{Width: s.width, Color: s.color, Files: files})
	}
	return printed(io.WriteString(s.out, summary(r, files)))
}

// unheld lists the trials that did not hold. Those of one verdict for one and
// the same reason, such as an observer that is blind, stand together.
func unheld(trials []reports.Trial) []string {
	type cause struct {
		verdict hostile.Verdict
		reason  string
	}
	var order []cause
	ids := map[cause][]string{}
	for _, t := range trials {
		if t.Verdict == hostile.Held {
			continue
		}
		c := cause{t.Verdict, t.Reason}
		if ids[c] == nil {
			order = append(order, c)
		}
		ids[c] = append(ids[c], t.ID)
	}
	var out []string
	for _, c := range order {
		out = append(out, fmt.Sprintf("%s %s: %s", c.verdict, strings.Join(ids[c], ", "), c.reason))
	}
	return out
}

// summary ends the plain lines, which are there already: what ran where, the
// outcome and why, and what a table would say below its rows.
func summary(r *reports.Report, files []string) string {
	var b strings.Builder
	counts := map[hostile.Verdict]int{}
	for _, t := range r.Trials {
		counts[t.Verdict]++
	}
	fmt.Fprintf(&b, "\n%s\n\n", strings.Join(reports.Title(r), "\n"))
	fmt.Fprintf(&b, "%s: %d trials", reports.Harmless(string(r.Outcome)), len(r.Trials))
	for _, v := range []hostile.Verdict{hostile.Held, hostile.Fell, hostile.Misnamed, hostile.Silent, hostile.Blind, hostile.Broken} {
		if counts[v] > 0 {
			fmt.Fprintf(&b, ", %d %s", counts[v], v)
		}
	}
	fmt.Fprintf(&b, ", in %.1f s\n", float64(r.DurationMS)/1000)
	if r.Unproven != "" { // it lies in no trial, so nothing else tells it
		fmt.Fprintf(&b, "Unproven: %s\n", reports.Harmless(r.Unproven))
	}
	fmt.Fprintf(&b, "%s\n", reports.ProofLine(r))
	if !r.Complete {
		b.WriteString("A selection of the trials was asked, which qualifies no runner.\n")
	}
	failed := unheld(r.Trials)
	for _, part := range []struct {
		title string
		items []string
	}{{"Did not hold", failed}, {"What this cannot show", r.CannotShow}, {"Files", files}} {
		if len(part.items) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", part.title)
		for _, i := range part.items {
			fmt.Fprintf(&b, "  %s\n", reports.Harmless(i))
		}
	}
	return b.String()
}
