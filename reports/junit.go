package reports

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"tenwalls.dev/harness/hostile"
)

// The shape that readers of JUnit agree on; see junit_case.go for what stands in it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"` // always 0: an unmet need is an error
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Hostname   string          `xml:"hostname,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitCase struct {
		ClassName  string          `xml:"classname,attr"`
		Name       string          `xml:"name,attr"`
		Time       string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Failure    *junitFault     `xml:"failure"`
		Error      *junitFault     `xml:"error"`
		Out        *junitText      `xml:"system-out"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",cdata"`
	}
	// CDATA keeps the lines readable; every character in it is Harmless or a
	// line break of our own, so that it needs no escaping.
	junitText struct {
		Text string `xml:",cdata"`
	}
)

// JUnit returns junit.xml: a testsuite an attempt, a testcase a trial, in one
// fixed order and with unique names. Fell and misnamed are failures; silent,
// blind, broken and any unknown verdict are errors; nothing is ever skipped.
//
// A last suite, "run", holds one case that passes only when the run was asked
// to its end and its outcome agrees with its verdicts, so that an interrupted
// or empty run is never green.
func JUnit(r *Report) ([]byte, error) {
	doc := junitSuites{Name: "tenwalls", Time: seconds(r.DurationMS)}
	names := map[string]bool{}
	for _, g := range grouped(r) {
		doc.add(suiteOf(r, g, names))
	}
	doc.add(runSuite(r))
	var buf bytes.Buffer
	buf.WriteString(xml.Header)
	enc := xml.NewEncoder(&buf)
	enc.Indent("", " ")
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("encode junit: %w", err)
	}
	buf.WriteByte('\n')
	return buf.Bytes(), nil
}

func (d *junitSuites) add(s junitSuite) {
	s.count()
	d.Tests += s.Tests
	d.Failures += s.Failures
	d.Errors += s.Errors
	d.Suites = append(d.Suites, s)
}

func (s *junitSuite) count() {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Error != nil {
			s.Errors++
		}
	}
}

func newSuite(r *Report, name string, started time.Time, ms int64) junitSuite {
	return junitSuite{
		Name:      name,
		Time:      seconds(ms),
		Timestamp: started.UTC().Format("2006-01-02T15:04:05"),
		Hostname:  short(r.Host.Name, maxNoteShown),
		Properties: properties(
			"run", r.Run,
			"outcome", string(r.Outcome),
			"kernel", r.Host.Kernel,
			"runtime", r.Runtime.Version,
			"platform", r.Runtime.Platform,
			"runtime_digest", r.Runtime.Digest,
			"config_digest", r.ConfigDigest,
		),
	}
}

// properties makes a list of name and value in turn; an empty value is left out.
func properties(pairs ...string) []junitProperty {
	var out []junitProperty
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, junitProperty{Name: pairs[i], Value: short(pairs[i+1], maxShown)})
		}
	}
	return out
}

// runSuite is about the run as a whole.
func runSuite(r *Report) junitSuite {
	s := newSuite(r, "run", r.Started, r.DurationMS)
	c := junitCase{ClassName: "tenwalls.run", Name: "run: asked to its end", Time: seconds(r.DurationMS)}
	if why := unfinished(r); why != "" {
		c.Error = &junitFault{Message: why, Type: "unproven", Text: why}
	}
	s.Cases = []junitCase{c}
	return s
}

// unfinished says why the run as a whole proves nothing, whatever its trials say.
func unfinished(r *Report) string {
	held := true
	for _, t := range r.Trials {
		held = held && t.Verdict == hostile.Held
	}
	switch {
	case r.Interrupted != "":
		return "the run was interrupted: " + short(r.Interrupted, maxShown)
	case r.Unproven != "":
		return short(r.Unproven, maxShown)
	case len(r.Trials) == 0:
		return "the run holds no trial"
	case held != (r.Outcome == hostile.Qualified):
		return "the outcome " + short(string(r.Outcome), maxNoteShown) + " does not follow from the verdicts"
	}
	return ""
}

// className is "tenwalls.step-05.processor" or "tenwalls.contract.census".
func className(g group) string {
	name := strings.ReplaceAll(Harmless(g.attempt), ".", "-")
	if g.step == 0 {
		return "tenwalls.contract." + name
	}
	return fmt.Sprintf("tenwalls.step-%02d.%s", g.step, name)
}
