package sandbox

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"tenwalls.dev/harness/sandbox/internal/printable"
)

// Receipt binds accepted execution controls to an authenticated broker
// identity. Transport authentication is mandatory; Signature signs canonical
// JSON with this field empty using the broker's Ed25519 key.
type Receipt struct {
	SchemaVersion int          `json:"schema_version"`
	Job           Job          `json:"job"`
	Capabilities  Capabilities `json:"capabilities"` // those that the job was accepted under
	Broker        string       `json:"broker"`       // printable, 1 to 255 bytes
	AcceptedAt    time.Time    `json:"accepted_at"`
	Signature     []byte       `json:"signature"` // 64 bytes; signed as the empty string ""
}

// SignReceipt returns r, detached, under the broker's signature; one that r
// carries is replaced. The key is Ed25519, held wherever [crypto.Signer]
// reaches. It refuses to sign what Verify would refuse: among others a job
// that the capabilities did not support at AcceptedAt.
func SignReceipt(r Receipt, key crypto.Signer) (Receipt, error) {
	r.Job = r.Job.detach()
	if err := r.check(); err != nil {
		return Receipt{}, fmt.Errorf("sign receipt: %w", err)
	}
	message, err := r.message()
	if err != nil {
		return Receipt{}, fmt.Errorf("sign receipt: %w", err)
	}
	if r.Signature, err = sign(key, message); err != nil {
		return Receipt{}, fmt.Errorf("sign receipt: %w", err)
	}
	return r, nil
}

// Verify checks the signature against the broker's key and then that the
// signed words fit together: job and capabilities are valid, and these
// supported that at AcceptedAt. So a receipt can be verified long after its
// capabilities expired. The error wraps [ErrMutated] when the signature does
// not fit. It does not prove that the job ran.
func (r Receipt) Verify(pub ed25519.PublicKey) error {
	message, err := r.message()
	if err != nil {
		return fmt.Errorf("verify receipt: %w", err)
	}
	if err := verify(pub, message, r.Signature); err != nil {
		return fmt.Errorf("verify receipt: %w", err)
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("verify receipt: %w", err)
	}
	return nil
}

// message is what is signed. Receipt and Result need no prefix to be told
// apart: each always writes fields that the other never has.
func (r Receipt) message() ([]byte, error) {
	r.Signature = []byte{}
	return Canonical(r)
}

func (r Receipt) check() error {
	if r.SchemaVersion != SchemaVersion {
		return fmt.Errorf("schema_version: %d is not %d", r.SchemaVersion, SchemaVersion)
	}
	if err := printable.Check(r.Broker, maxName); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if r.AcceptedAt.IsZero() {
		return fmt.Errorf("accepted_at: %w", printable.ErrEmpty)
	}
	return r.Capabilities.SupportsAt(r.Job, r.AcceptedAt)
}

// sign returns key's Ed25519 signature and checks it once, because a key
// service can answer with another key's.
func sign(key crypto.Signer, message []byte) ([]byte, error) {
	if key == nil {
		return nil, errors.New("no key")
	}
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("key is %T, not Ed25519", key.Public())
	}
	// Ed25519 hashes the message itself (RFC 8032): no hash is announced.
	signature, err := key.Sign(rand.Reader, message, crypto.Hash(0))
	if err != nil {
		return nil, err
	}
	if err := verify(pub, message, signature); err != nil {
		return nil, fmt.Errorf("signer's own signature: %w", err)
	}
	return signature, nil
}

// verify never panics, whatever the length of pub and signature.
func verify(pub ed25519.PublicKey, message, signature []byte) error {
	if len(pub) != ed25519.PublicKeySize {
		return fmt.Errorf("public key: %d bytes, want %d", len(pub), ed25519.PublicKeySize)
	}
	if !ed25519.Verify(pub, message, signature) {
		return fmt.Errorf("signature: %w", ErrMutated)
	}
	return nil
}
