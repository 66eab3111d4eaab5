package reports

import (
	"fmt"
	"slices"
	"strings"

	"tenwalls.dev/harness/hostile"
)

// maxAnnotations is how many errors GitHub shows of one step.
const maxAnnotations = 10

// Annotations returns the workflow commands that mark what did not hold, a line
// each, an attempt each: the worst of its routes, and how many more. file is the
// path that they point at, from the root of the repository; empty: none. The
// guest's words in them are text and cannot be a command or end one.
func Annotations(r *Report, file string) string {
	var all []string
	if why := unfinished(r); why != "" {
		all = append(all, ErrorCommand(file, "run", why))
	}
	groups := grouped(r)
	slices.SortStableFunc(groups, func(a, b group) int { // the worst first: not all may be shown
		x, _ := a.governing()
		y, _ := b.governing()
		return badness(y.Verdict) - badness(x.Verdict)
	})
	for _, g := range groups {
		t, same := g.governing()
		if t.Verdict == hostile.Held {
			break
		}
		words := t.Reason
		if same > 1 {
			words = fmt.Sprintf("%s (so did %d more of its routes)", words, same-1)
		}
		all = append(all, ErrorCommand(file, fmt.Sprintf("%s: %s: %s", t.label(), t.Route, t.Verdict), words))
	}
	if more := len(all) - maxAnnotations + 1; more > 1 {
		all = append(all[:maxAnnotations-1], ErrorCommand(file, "more", fmt.Sprintf("%d more attempts did not hold: see the summary, or report.json", more)))
	}
	return strings.Join(all, "")
}

// ErrorCommand is one annotation, with its line break.
func ErrorCommand(file, title, words string) string {
	where := ""
	if file != "" {
		where = "file=" + property(file) + ","
	}
	return "::error " + where + "title=" + property("tenwalls "+title) + "::" + commandData.Replace(short(words, maxShown)) + "\n"
}

// What the runner turns back, in the text of a command and in its properties.
var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func property(s string) string { return commandProperty.Replace(short(s, maxNoteShown)) }

// maxUnheld is how many trials that did not hold a summary tells one by one.
const maxUnheld = 50

// Markdown is the report as a job summary: the outcome, a row an attempt, what
// did not hold, and what this cannot show. Its size is bounded, below 512 KiB
// (GitHub takes 1 MiB of a step). The guest's words stand in code, with every
// character that could be markup, a link or a mention written as its number.
func Markdown(r *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## tenwalls: %s\n\n", plain(string(r.Outcome)))
	fmt.Fprintf(&b, "%s\n\n", plain(summary(r)))
	fmt.Fprintf(&b, "Run %s, profile %s, runsc %s (%s) on Linux %s, %s, cgroup v%d\n\n", code(r.Run), code(r.Profile), code(r.Runtime.Version),
		code(r.Runtime.Platform), code(r.Host.Kernel), code(r.Host.Arch), r.Host.CgroupVersion)
	b.WriteString("| step | attempt | expected | inside said | host saw | verdict |\n| --- | --- | --- | --- | --- | --- |\n")
	var unheld []*Trial
	for _, g := range grouped(r) {
		w, _ := rowOf(g)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", plain(w.step), plain(w.attempt), plain(w.expected), code(w.inside), code(w.host), plain(w.verdict))
		for _, t := range g.trials {
			if t.Verdict != hostile.Held {
				unheld = append(unheld, t)
			}
		}
	}
	if len(unheld) > 0 {
		b.WriteString("\n### Did not hold\n\n")
	}
	for i, t := range unheld {
		if i == maxUnheld {
			fmt.Fprintf(&b, "- and %d more: see report.json\n", len(unheld)-maxUnheld)
			break
		}
		fmt.Fprintf(&b, "- **%s** %s: %s\n", plain(string(t.Verdict)), plain(t.label()+": "+t.Route), code(t.Reason))
	}
	b.WriteString("\n### What this cannot show\n\n")
	for _, s := range r.CannotShow[:min(len(r.CannotShow), maxAnnotations)] {
		fmt.Fprintf(&b, "- %s\n", plain(s))
	}
	return b.String()
}

// plain is text in which nothing is markup.
func plain(s string) string { return entities(short(s, maxShown)) }

// code is text in code, where GitHub looks for no mentions and links either.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "<code>" + entities(short(s, maxShown)) + "</code>"
}

// entities writes every character of ASCII but letters, digits, spaces and a few
// that start nothing as a numeric reference, which is never taken for structure
// (CommonMark 0.31, section 2.5).
func entities(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 0x80, r == ' ', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	return b.String()
}
