package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"tenwalls.dev/harness/hostile"
)

var digestFormat = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// validate holds what every statement must say, whoever made it.
func (s Statement) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Schema != StatementSchema {
		fault("schema is %q, not %q", said(s.Schema), StatementSchema)
	}
	for _, f := range [][2]string{{"run", s.Run}, {"host/boot_id", s.Host.BootID}, {"host/kernel", s.Host.Kernel}} {
		if f[1] == "" {
			fault("%s is empty", f[0])
		}
	}
	for _, f := range [][2]string{
		{"runtime_digest", s.RuntimeDigest}, {"config_digest", s.ConfigDigest},
		{"report_digest", s.ReportDigest}, {"junit_digest", s.JUnitDigest},
	} {
		if !digestFormat.MatchString(f[1]) {
			fault("%s is %q, not sha256:<64 hex digits>", f[0], said(f[1]))
		}
	}
	if s.ProofDigest != "" && !digestFormat.MatchString(s.ProofDigest) {
		fault("proof_digest is %q, not sha256:<64 hex digits>", said(s.ProofDigest))
	}
	if !slices.Contains([]hostile.Outcome{hostile.Qualified, hostile.Refused, hostile.Unproven}, s.Outcome) {
		fault("outcome is %q", said(string(s.Outcome)))
	}
	if s.Issued.IsZero() || !s.Expires.After(s.Issued) {
		fault("expires is not after issued")
	}
	if len(s.Capabilities) > 0 {
		if s.Outcome != hostile.Qualified {
			fault("capabilities beside the outcome %q", said(string(s.Outcome)))
		}
		if err := exactNumbers(s.Capabilities); err != nil {
			fault("capabilities: %w", err)
		}
	}
	return errors.Join(errs...)
}

// maxExact is the largest integer that canonical JSON keeps: RFC 8785, section
// 3.2.2.3, writes every number as an IEEE 754 double.
const maxExact = 1<<53 - 1

// exactNumbers refuses numbers that canonical JSON would silently round, and
// anything that is no object.
func exactNumbers(raw json.RawMessage) error {
	if !json.Valid(raw) {
		return errors.New("not valid json")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for first := true; ; first = false {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if first && tok != json.Delim('{') {
			return errors.New("not an object")
		}
		n, ok := tok.(json.Number)
		if !ok {
			continue
		}
		if i, err := strconv.ParseInt(n.String(), 10, 64); err != nil || i > maxExact || i < -maxExact {
			return fmt.Errorf("number %q is no integer within 2^53-1", said(n.String()))
		}
	}
}
