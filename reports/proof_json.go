package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gowebpki/jcs"

	"tenwalls.dev/harness/internal/bounded"
)

// MaxProof bounds what DecodeProof and ReadProof take, in bytes.
const MaxProof = 8 << 20

// EncodeProof returns prove.json, in the form and with the care of [Encode]. It
// fails on a proof that the schema refuses, or whose outcome does not follow
// from its lines.
func EncodeProof(p *Proof) ([]byte, error) {
	c := *p
	c.Started, c.Finished = utc(c.Started), utc(c.Finished)
	c.Runtime.Flags, c.CannotShow = list(c.Runtime.Flags), list(c.CannotShow)
	c.Baseline, c.Mutants = list(c.Baseline), slices.Clone(list(c.Mutants))
	for i := range c.Mutants {
		c.Mutants[i].Trials = list(c.Mutants[i].Trials)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("encode proof: %w", err)
	}
	data := printable(buf.Bytes())
	if err := validateProof(data, p); err != nil {
		return nil, fmt.Errorf("encode proof: %w", err)
	}
	return data, nil
}

// DecodeProof reads a proof as strictly as [Decode] does a report.
func DecodeProof(data []byte) (*Proof, error) {
	if len(data) > MaxProof {
		return nil, fmt.Errorf("decode proof: %d bytes, more than %d", len(data), MaxProof)
	}
	if _, err := obeys(compiledProof(), data); err != nil {
		return nil, fmt.Errorf("decode proof: %w", err)
	}
	if _, err := jcs.Transform(data); err != nil { // a key that stands twice
		return nil, fmt.Errorf("decode proof: %s", Harmless(err.Error()))
	}
	var p Proof
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("decode proof: %w", err)
	}
	if err := validateProof(data, &p); err != nil {
		return nil, fmt.Errorf("decode proof: %w", err)
	}
	return &p, nil
}

// ReadProof reads and decodes the proof at path, and returns its bytes, whose
// digest names it.
func ReadProof(path string) (*Proof, []byte, error) {
	data, err := bounded.Read(path, MaxProof)
	if err != nil {
		return nil, nil, fmt.Errorf("read proof: %w", err)
	}
	p, err := DecodeProof(data)
	if err != nil {
		return nil, nil, fmt.Errorf("read proof %s: %w", path, err)
	}
	return p, data, nil
}

// validateProof adds to the schema what it cannot say.
func validateProof(data []byte, p *Proof) error {
	if _, err := obeys(compiledProof(), data); err != nil {
		return err
	}
	var errs []error
	seen := map[string]bool{}
	for i, m := range p.Mutants {
		if seen[m.Name] {
			errs = append(errs, fmt.Errorf("mutants/%d/name: %s stands there twice", i, m.Name))
		}
		seen[m.Name] = true
	}
	if o := p.Judged(); o != p.Outcome {
		errs = append(errs, fmt.Errorf("outcome: %s does not follow from the mutants, %s does", p.Outcome, o))
	}
	return errors.Join(errs...)
}
