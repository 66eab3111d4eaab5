// Package evidence refers to immutable artifact bytes.
//
// What this package does not prove: that the bytes exist, that they may be
// read, that they are what MediaType says, or that Producer made them. A Ref
// is metadata. Whoever fetches the bytes compares their size and digest with
// the Ref before using them.
package evidence

import (
	_ "crypto/sha256" // go-digest finds a hash only where it is imported
	"fmt"
	"mime"
	"strings"

	"github.com/opencontainers/go-digest"

	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/internal/printable"
)

const (
	// maxSize is the largest integer that canonical JSON carries exactly
	// (RFC 8785 section 3.2.2.3, RFC 7493 section 2.2), in bytes.
	maxSize = 1<<53 - 1
	// maxMediaType leaves room for the 127 + 1 + 127 bytes of RFC 6838
	// section 4.2.
	maxMediaType = 255
	maxProducer  = 255
	maxSource    = 2048
)

// Ref refers to immutable bytes by identity and content. Two Refs with the
// same ID refer to the same bytes, so they are equal in every field.
type Ref struct {
	ID        id.ID  `json:"id"`
	Digest    string `json:"digest"`     // sha256:<64 lower-case hex digits> of the bytes
	Size      int64  `json:"size"`       // bytes
	MediaType string `json:"media_type"` // declared, RFC 6838; nobody has looked at the content
	Producer  string `json:"producer"`   // who captured the bytes, for example cortex/sandbox
	Source    string `json:"source"`     // opaque provenance; never a host path or a URL to fetch
}

// Validate checks the reference's shape; see the package comment for what it
// leaves open.
func (r Ref) Validate() error {
	if err := r.ID.Validate(); err != nil {
		return fmt.Errorf("validate reference: %w", err)
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("validate reference %s: %w", r.ID, err)
	}
	return nil
}

func (r Ref) check() error {
	if err := ValidateDigest(r.Digest); err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	if r.Size < 0 || r.Size > maxSize {
		return fmt.Errorf("size: %d is outside 0 to %d", r.Size, int64(maxSize))
	}
	if err := ValidateMediaType(r.MediaType); err != nil {
		return fmt.Errorf("media type: %w", err)
	}
	if err := printable.Check(r.Producer, maxProducer); err != nil {
		return fmt.Errorf("producer: %w", err)
	}
	if err := printable.Check(r.Source, maxSource); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	return nil
}

// Digest returns the digest of b in the form that Ref.Digest has.
func Digest(b []byte) string {
	return digest.SHA256.FromBytes(b).String()
}

// ValidateDigest checks the form sha256:<64 lower-case hex digits>. Other
// algorithms are refused: one form only, so that equal content has equal text.
func ValidateDigest(s string) error {
	encoded, ok := strings.CutPrefix(s, "sha256:")
	if !ok {
		return fmt.Errorf("%.80q: want sha256:<64 hex digits>", s)
	}
	if err := digest.SHA256.Validate(encoded); err != nil {
		return fmt.Errorf("%.80q: %w", s, err)
	}
	return nil
}

// ValidateMediaType checks that s is a media type with a subtype, parameters
// allowed (RFC 6838 section 4.2, RFC 2045 section 5.1). It does not look the
// type up in any registry.
func ValidateMediaType(s string) error {
	if err := printable.Check(s, maxMediaType); err != nil {
		return err
	}
	t, _, err := mime.ParseMediaType(s)
	if err != nil {
		return fmt.Errorf("%q: %w", s, err)
	}
	if !strings.Contains(t, "/") { // mime knows Content-Disposition's bare words too
		return fmt.Errorf("%q: want type/subtype", s)
	}
	return nil
}
