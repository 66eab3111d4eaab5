package reports

import (
	"bytes"
	"encoding/xml"
	"fmt"

	"tenwalls.dev/harness/hostile"
)

// ProofJUnit returns the junit.xml of a proof: one testsuite with a testcase a
// mutant, in one fixed order and with unique names, and one for the row with
// nothing mutated. A mutant that survived or was mispredicted is a failure, one
// that could not be asked an error; one that is not applicable here passes, and
// says so in its output: nothing is ever skipped.
func ProofJUnit(p *Proof) ([]byte, error) {
	s := junitSuite{
		Name: "prove", Time: seconds(p.DurationMS), Timestamp: p.Started.UTC().Format("2006-01-02T15:04:05"), Hostname: short(p.Host.Name, maxNoteShown),
		Properties: properties("proof", p.Proof, "outcome", string(p.Outcome), "kernel", p.Host.Kernel, "runtime", p.Runtime.Version,
			"platform", p.Runtime.Platform, "runtime_digest", p.Runtime.Digest, "config_digest", p.ConfigDigest,
			"killed", fmt.Sprint(p.Count(Killed)), "not_applicable", fmt.Sprint(p.Count(NotApplicable))),
	}
	s.Cases = append(s.Cases, baselineCase(p))
	for i := range p.Mutants {
		s.Cases = append(s.Cases, mutantCase(&p.Mutants[i]))
	}
	doc := junitSuites{Name: "tenwalls prove", Time: seconds(p.DurationMS)}
	doc.add(s)
	var buf bytes.Buffer
	buf.WriteString(xml.Header)
	enc := xml.NewEncoder(&buf)
	enc.Indent("", " ")
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("encode junit of the proof: %w", err)
	}
	buf.WriteByte('\n')
	return buf.Bytes(), nil
}

const proofClass = "tenwalls.prove"

func baselineCase(p *Proof) junitCase {
	c := junitCase{ClassName: proofClass, Name: "nothing mutated: every trial holds", Time: seconds(0)}
	var lines string
	for _, t := range p.Baseline {
		if t.Verdict != hostile.Held {
			lines += short(t.ID, maxNoteShown) + " " + short(string(t.Verdict), maxNoteShown) + ": " + short(t.Reason, maxShown) + "\n"
		}
	}
	switch {
	case len(p.Baseline) == 0:
		c.Error = &junitFault{Message: "nothing was asked", Type: "no evidence"}
	case lines != "":
		c.Error = &junitFault{Message: "not every trial held with nothing mutated", Type: "unproven", Text: lines}
	case p.Interrupted != "":
		c.Error = &junitFault{Message: "interrupted: " + short(p.Interrupted, maxShown), Type: "unproven"}
	}
	return c
}

func mutantCase(m *Mutant) junitCase {
	c := junitCase{
		ClassName: proofClass + "." + Harmless(string(m.Part)), Name: short(m.Name, maxNoteShown), Time: seconds(m.DurationMS),
		Properties: properties("title", m.Title, "attempt", m.Attempt, "source", m.Source, "killing", string(m.Killing)),
	}
	text := cut(Harmless(m.Reason), maxMispredicted) + "\n"
	for _, t := range m.Trials {
		if t.Verdict != hostile.Held || t.Predicted != hostile.Held {
			text += fmt.Sprintf("%s: %s, predicted %s, by %q\n", short(t.ID, maxNoteShown), short(string(t.Verdict), maxNoteShown), short(string(t.Predicted), maxNoteShown), t.Basis)
		}
	}
	c.Out = &junitText{Text: "\n" + text}
	fault := &junitFault{Message: short(m.Reason, maxShown), Type: short(string(m.Killing), maxNoteShown), Text: text}
	switch m.Killing {
	case Killed, NotApplicable:
	case Survived, Mispredicted:
		c.Failure = fault
	default:
		c.Error = fault
	}
	return c
}
