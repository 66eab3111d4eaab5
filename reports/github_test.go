package reports

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
)

// markup is what a hostile guest would write into a job's log and summary.
const markup = "\n::set-output name=x::y\r\n::error::lie ##[add-mask]a %0A::warning:: a,b:c | **b** `x` <img src=http://h/> </code><script> [l](http://h) ![i](//h) @all #1 &lt; http://h www.h.example _e_ ~~s~~ \\| $x$"

func markedReport() *Report {
	r := exampleReport()
	r.Runtime.Version, r.Host.Kernel = markup, markup
	for i := range r.Trials {
		t := &r.Trials[i]
		t.Reason, t.Trouble, t.Route = markup+t.Reason, markup, t.Route+markup
		if t.Claim != nil {
			t.Claim.Note = markup
		}
		for j := range t.Observations {
			t.Observations[j].Found = append(t.Observations[j].Found, markup)
		}
	}
	return r
}

func TestGitHubGolden(t *testing.T) {
	golden(t, "github.txt", []byte(Annotations(exampleReport(), "ci/runner.yaml")))
	golden(t, "github.md", []byte(Markdown(exampleReport())))
}

func TestAnnotationsAreCommandsOfOursOnly(t *testing.T) {
	got := Annotations(markedReport(), "ci/run,ner:%\n.yaml")
	line := regexp.MustCompile(`^::error file=ci/run%2Cner%3A%25\\n\.yaml,title=tenwalls [^:,]*::[^\r\n]*$`)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	for _, l := range lines {
		if !line.MatchString(l) {
			t.Errorf("%q", l)
		}
		if strings.Contains(l, "%0A") || strings.Contains(l, "%0D") {
			t.Errorf("a line break comes back from %q", l)
		}
	}
	if len(lines) < 5 {
		t.Errorf("%d lines", len(lines))
	}
	if strings.Contains(Annotations(exampleReport(), ""), "file=") {
		t.Error("a file is named and there is none")
	}
}

func TestAnnotationsAreBounded(t *testing.T) {
	r := goodReport()
	if got := Annotations(r, ""); got != "" {
		t.Errorf("everything held, and %q", got)
	}
	for i := range r.Trials {
		r.Trials[i].Verdict, r.Trials[i].Reason = hostile.Fell, strings.Repeat("x", 1<<20)
	}
	r.Outcome = hostile.Refused
	got := Annotations(r, "")
	if n := strings.Count(got, "\n"); n != maxAnnotations || len(got) > 10_000 {
		t.Errorf("%d lines, %d bytes", n, len(got))
	}
	attempts := len(grouped(r))
	if want := fmt.Sprintf("%d more attempts did not hold", attempts-maxAnnotations+1); !strings.Contains(got, want) {
		t.Errorf("no %q in %s", want, got)
	}
	r = goodReport()
	r.Interrupted, r.Outcome = "by SIGTERM", hostile.Unproven
	if got := Annotations(r, ""); !strings.Contains(got, "::error title=tenwalls run::the run was interrupted") {
		t.Errorf("an interrupted run: %q", got)
	}
}

// When there is no room for all, the walls that fell are told.
func TestAnnotationsTellTheWorstFirst(t *testing.T) {
	r := goodReport()
	for i := range r.Trials {
		r.Trials[i].Verdict = hostile.Blind
	}
	last := &r.Trials[len(r.Trials)-1]
	last.Verdict, r.Outcome = hostile.Fell, hostile.Refused
	if got := Annotations(r, ""); !strings.HasPrefix(got, "::error title=tenwalls contract census%3A all%3A fell::") {
		t.Errorf("got %s", got)
	}
}

// Without our own markup nothing is left that any reader of Markdown takes for
// markup, and reading it back gives the text.
func TestMarkdownHoldsNoMarkupOfTheGuest(t *testing.T) {
	all := Markdown(markedReport())
	for _, l := range strings.Split(all, "\n") {
		words := l
		if l == "| --- | --- | --- | --- | --- | --- |" {
			continue
		}
		for _, ours := range []string{"<code>", "</code>", "## tenwalls:", "### Did not hold", "### What this cannot show", "- **", "** ", "- ", " |", "| ", "(", ")", ", ", ": "} {
			words = strings.ReplaceAll(words, ours, " ")
		}
		words = regexp.MustCompile(`&#[0-9]+;`).ReplaceAllString(words, "")
		words = strings.ReplaceAll(words, "report.json", "")
		if i := strings.IndexAny(words, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"); i >= 0 {
			t.Errorf("%q is left in %q", words[i:i+1], l)
		}
		if cells := strings.Count(l, "|"); strings.HasPrefix(l, "|") && cells != 7 {
			t.Errorf("%d bars in %q", cells, l)
		}
	}
	if got := html.UnescapeString(entities(Harmless(markup))); got != Harmless(markup) {
		t.Errorf("read back: %q", got)
	}
	if !strings.Contains(html.UnescapeString(all), "<img src=http://h/>") {
		t.Error("the guest's words are not shown")
	}
}

func TestMarkdownIsBounded(t *testing.T) {
	r := exampleReport()
	r.CannotShow = strings.Split(strings.Repeat(strings.Repeat("`", 1000)+"\n", 1000), "\n")
	one := r.Trials[0]
	one.Verdict = hostile.Fell
	for i := range 2000 {
		one.ID, one.Attempt = fmt.Sprint(i), hostile.Catalogue()[i%len(hostile.Catalogue())].Name
		one.Step, one.Reason, one.Route = i%11, strings.Repeat("<", 1<<16), strings.Repeat("|", 1000)
		r.Trials = append(r.Trials, one)
	}
	if got := Markdown(r); len(got) > 512<<10 || !strings.Contains(got, "more: see report.json") {
		t.Errorf("%d bytes", len(got))
	}
}
