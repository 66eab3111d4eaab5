package attest

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gowebpki/jcs"
	"tenwalls.dev/harness/hostile"
)

// StatementSchema identifies the form of a statement. It is signed with the
// rest, so that a signature over something else of the same key is no statement.
const StatementSchema = "https://tenwalls.dev/schema/statement/v1"

// Statement is what a run says about one host, to be signed. Times are UTC in
// whole seconds. Digests are "sha256:<hex>".
type Statement struct {
	Schema        string          `json:"schema"` // StatementSchema; set by Sign
	Run           string          `json:"run"`
	Outcome       hostile.Outcome `json:"outcome"`
	Issued        time.Time       `json:"issued"`
	Expires       time.Time       `json:"expires"` // the first instant at which it says nothing any more
	Host          StatementHost   `json:"host"`
	RuntimeDigest string          `json:"runtime_digest"`         // of the runsc binary
	ConfigDigest  string          `json:"config_digest"`          // of the effective runner configuration
	ReportDigest  string          `json:"report_digest"`          // of the bytes of report.json
	JUnitDigest   string          `json:"junit_digest"`           // of the bytes of junit.xml
	ProofDigest   string          `json:"proof_digest,omitempty"` // of the bytes of the last whole prove.json; empty when there is none
	Capabilities  json.RawMessage `json:"capabilities,omitempty"`
}

// StatementHost says which boot of which kernel the run was on.
type StatementHost struct {
	BootID string `json:"boot_id"`
	Kernel string `json:"kernel"`
}

// Attestation is a signed statement.
//
// The signature is Ed25519 over the payload's bytes and nothing else, so that
// it can be checked without this program: with the decoded fields in files,
// openssl pkeyutl -verify -pubin -inkey key.pub -rawin -in payload -sigfile signature.
type Attestation struct {
	Payload   []byte `json:"payload"`   // the statement in canonical JSON (RFC 8785)
	KeyID     string `json:"key_id"`    // see [KeyID]; a hint for finding the key, proven only by the signature
	Signature []byte `json:"signature"` // 64 bytes
}

// Reasons for which [Verify] refuses an attestation that is whole.
var (
	ErrSignature = errors.New("not signed by a trusted key")
	ErrExpired   = errors.New("attestation has expired")
	ErrNotYet    = errors.New("attestation was issued in the future")
)

// maxSkew is how far the signer's clock may be ahead of the verifier's.
const maxSkew = 5 * time.Minute

// maxAttestation bounds attestation.json, in bytes.
const maxAttestation = 1 << 20

// Sign returns the statement signed by an Ed25519 key, which may live in a key
// service. Times are cut to seconds and the schema is set. It refuses a
// statement that [Verify] would refuse, among them capabilities beside any
// outcome but qualified.
func Sign(s Statement, signer crypto.Signer) (Attestation, error) {
	pub, ok := signer.Public().(ed25519.PublicKey)
	if !ok {
		return Attestation{}, fmt.Errorf("sign attestation: key is a %T, not Ed25519", signer.Public())
	}
	s.Schema = StatementSchema
	s.Issued, s.Expires = s.Issued.UTC().Truncate(time.Second), s.Expires.UTC().Truncate(time.Second)
	if err := s.validate(); err != nil {
		return Attestation{}, fmt.Errorf("sign attestation: %w", err)
	}
	plain, err := json.Marshal(s)
	if err != nil {
		return Attestation{}, fmt.Errorf("sign attestation: %w", err)
	}
	payload, err := jcs.Transform(plain)
	if err != nil {
		return Attestation{}, fmt.Errorf("sign attestation: canonical json: %w", err)
	}
	id, err := KeyID(pub)
	if err != nil {
		return Attestation{}, fmt.Errorf("sign attestation: %w", err)
	}
	sig, err := signer.Sign(rand.Reader, payload, crypto.Hash(0))
	if err != nil {
		return Attestation{}, fmt.Errorf("sign attestation: %w", err)
	}
	if !ed25519.Verify(pub, payload, sig) { // a key service may answer with another key's
		return Attestation{}, errors.New("sign attestation: the signer's answer does not verify under its own public key")
	}
	return Attestation{Payload: payload, KeyID: id, Signature: sig}, nil
}

// Verify returns the statement when one of the keys signed it and it is valid
// at now. Errors that somebody branches on are [ErrSignature], [ErrExpired] and
// [ErrNotYet]; nothing of an unverified statement is returned.
//
// It does not compare the statement's digests with files or with this host:
// that is the caller's.
func Verify(a Attestation, keys []ed25519.PublicKey, now time.Time) (Statement, error) {
	s, err := verify(a, keys, now)
	if err != nil {
		return Statement{}, fmt.Errorf("verify attestation: %w", err)
	}
	return s, nil
}

func verify(a Attestation, keys []ed25519.PublicKey, now time.Time) (Statement, error) {
	signed := slices.ContainsFunc(keys, func(k ed25519.PublicKey) bool {
		if len(k) != ed25519.PublicKeySize { // ed25519.Verify panics on it
			return false
		}
		id, err := KeyID(k)
		return err == nil && id == a.KeyID && ed25519.Verify(k, a.Payload, a.Signature)
	})
	if !signed {
		return Statement{}, fmt.Errorf("key id %q: %w", said(a.KeyID), ErrSignature)
	}
	var s Statement
	if err := strictly(a.Payload, &s); err != nil {
		return Statement{}, fmt.Errorf("payload: %w", err)
	}
	if canonical, err := jcs.Transform(a.Payload); err != nil || !bytes.Equal(canonical, a.Payload) {
		return Statement{}, errors.Join(errors.New("payload is not canonical json"), err)
	}
	if err := s.validate(); err != nil {
		return Statement{}, fmt.Errorf("payload: %w", err)
	}
	switch {
	case !now.Before(s.Expires):
		return Statement{}, fmt.Errorf("%w at %s", ErrExpired, s.Expires.Format(time.RFC3339))
	case s.Issued.After(now.Add(maxSkew)):
		return Statement{}, fmt.Errorf("%w, at %s: set this host's clock or the signer's", ErrNotYet, s.Issued.Format(time.RFC3339))
	}
	return s, nil
}

// Encode returns attestation.json.
func (a Attestation) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(a, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode attestation: %w", err)
	}
	return append(b, '\n'), nil
}

// DecodeAttestation reads attestation.json, which must be, to the byte, in the
// form that [Attestation.Encode] gives it: there is one form only, so that any
// change of the file is seen.
func DecodeAttestation(data []byte) (Attestation, error) {
	var a Attestation
	if len(data) > maxAttestation {
		return a, fmt.Errorf("decode attestation: %d bytes, more than %d", len(data), maxAttestation)
	}
	if err := strictly(data, &a); err != nil {
		return Attestation{}, fmt.Errorf("decode attestation: %w", err)
	}
	again, err := a.Encode()
	if err != nil {
		return Attestation{}, err
	}
	if !bytes.Equal(again, data) {
		return Attestation{}, errors.New("decode attestation: not in the form in which it was written: take the file as the run left it")
	}
	return a, nil
}

// strictly decodes one JSON value: no unknown fields, nothing behind it.
func strictly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bytes after the object")
	}
	return nil
}
