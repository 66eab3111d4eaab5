package reports

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"tenwalls.dev/harness/hostile"
)

// Section is one part of a difference. The list is closed, and a difference is
// told in its order.
type Section string

// Sections.
const (
	Verdicts Section = "verdicts"          // outcome, verdicts, and what was asked
	Refusals Section = "expected refusals" // what was written down, and by what a misnamed one was refused
	Identity Section = "identity"          // runtime, kernel, configuration, image, harness
	InForce  Section = "in force"          // what was read back from a running sandbox
	Census   Section = "census"            // entry points
	Timings  Section = "timings"           // beyond TimingFactor
)

var sections = []Section{Verdicts, Refusals, Identity, InForce, Census, Timings}

// A duration is told when it is longer or shorter by this factor and by this
// much besides: below it a busy machine makes the difference.
const (
	TimingFactor = 2
	TimingLeast  = 2 * time.Second
)

// Change is one thing that is otherwise in the second report. Its texts are
// harmless and bounded.
type Change struct {
	Section Section `json:"section"`
	Subject string  `json:"subject"` // "step-05/processor/relay", "runtime digest", "cgroup: memory limit"
	Before  string  `json:"before"`
	After   string  `json:"after"`
	Words   string  `json:"words"` // the whole of it in one line
}

// Side is one of the two runs.
type Side struct {
	Run      string          `json:"run"`
	Started  time.Time       `json:"started"`
	Outcome  hostile.Outcome `json:"outcome"`
	Complete bool            `json:"complete"`
}

// Difference is what changed between two runs.
type Difference struct {
	Before  Side     `json:"before"`
	After   Side     `json:"after"`
	Same    bool     `json:"same"`    // no change but of timings, which are a machine's and no wall's
	Changes []Change `json:"changes"` // by section, in the order of the sections
}

// Diff compares two reports, the earlier first. It looks at no evidence but the
// readings named above: two runs that are the same here held or fell alike
// under the same configuration, and may have measured other numbers.
//
// Not compared are the fixture layer and its digest, which hold a run's secrets
// and differ each time.
func Diff(before, after *Report) Difference {
	c := &comparison{a: before, b: after}
	c.outcome()
	both := c.paired()
	for _, p := range both {
		c.verdict(p)
	}
	c.unpaired()
	for _, p := range both {
		c.refusal(p)
	}
	c.identity()
	c.inForce()
	for _, p := range both {
		c.census(p)
	}
	c.timings(both)
	d := Difference{Before: side(before), After: side(after), Changes: list(c.changes)}
	d.Same = !slices.ContainsFunc(d.Changes, func(c Change) bool { return c.Section != Timings })
	return d
}

// Drift is the changes of what is in force: the values read back and the
// census. They count also where every trial held. What a selection of the trials
// did not read is none.
func (d Difference) Drift() []Change {
	var out []Change
	for _, c := range d.Changes {
		if c.Section == InForce && !d.After.Complete && (c.After == notRead || c.After == nothingRead) {
			continue
		}
		if c.Section == InForce || c.Section == Census {
			out = append(out, c)
		}
	}
	return out
}

// DriftWords is each change of what is in force in words, with the run before it.
func (d Difference) DriftWords() []string {
	var out []string
	for _, c := range d.Drift() {
		out = append(out, fmt.Sprintf("%s; last good run %s of %s", c.Words, d.Before.Run, d.Before.Started.Format(time.RFC3339)))
	}
	return out
}

func side(r *Report) Side {
	return Side{Run: short(r.Run, maxNoteShown), Started: utc(r.Started), Outcome: hostile.Outcome(short(string(r.Outcome), maxNoteShown)), Complete: r.Complete}
}

// Text is the difference for people: a line a change, below the title of its
// section.
func (d Difference) Text() string {
	var b strings.Builder
	name := func(s Side) string {
		return fmt.Sprintf("%s (%s, %s)", s.Run, s.Started.Format(time.RFC3339), s.Outcome)
	}
	fmt.Fprintf(&b, "before  %s\nnow     %s\n", name(d.Before), name(d.After))
	for _, s := range sections {
		title := strings.ToUpper(string(s[:1])) + string(s[1:])
		if s == Timings {
			title += fmt.Sprintf(" (beyond a factor of %d and by %s; no difference by themselves)", TimingFactor, TimingLeast)
		}
		for _, c := range d.Changes {
			if c.Section != s {
				continue
			}
			if title != "" {
				fmt.Fprintf(&b, "\n%s\n", title)
				title = ""
			}
			fmt.Fprintf(&b, "  %s\n", c.Words)
		}
	}
	if d.Same {
		b.WriteString("\nno difference\n")
	}
	return b.String()
}

// comparison collects the changes between a, before, and b, now.
type comparison struct {
	a, b    *Report
	changes []Change
}

// pair is one trial that both runs asked.
type pair struct{ a, b *Trial }

// paired returns the trials that both runs asked, in the report's order.
func (c *comparison) paired() []pair {
	was := map[string]*Trial{}
	for i := range c.a.Trials {
		was[c.a.Trials[i].ID] = &c.a.Trials[i]
	}
	var out []pair
	for _, g := range grouped(c.b) {
		for _, t := range g.trials {
			if before, ok := was[t.ID]; ok {
				out = append(out, pair{before, t})
			}
		}
	}
	return out
}

// change notes two values that are not the same. what names them in words; more
// is said behind them.
func (c *comparison) change(s Section, subject, what, before, after, more string) {
	if before != after {
		c.note(Change{s, subject, before, after, fmt.Sprintf("%s: %s before, %s now%s", what, shown(before), shown(after), more)})
	}
}

// note keeps a change: harmless, since the guest's words may be in it.
func (c *comparison) note(n Change) {
	n.Subject, n.Words = short(n.Subject, maxNoteShown), short(n.Words, 2*maxShown)
	n.Before, n.After = short(n.Before, maxShown), short(n.After, maxShown)
	c.changes = append(c.changes, n)
}

var digestFormat = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// shown is a value within a line: a digest by its first twelve digits, which
// tell two apart; the whole stands beside the words.
func shown(value string) string {
	if digestFormat.MatchString(value) {
		return value[:len("sha256:")+12]
	}
	if value == "" {
		return "none"
	}
	return value
}
