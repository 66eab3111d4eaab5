package sandbox

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox/evidence"
)

func newKey(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pub, key
}

func accepted(t *testing.T) Receipt {
	t.Helper()
	return Receipt{
		SchemaVersion: SchemaVersion,
		Job:           seal(t, draft()),
		Capabilities:  qualified(),
		Broker:        "broker-1",
		AcceptedAt:    noon,
	}
}

func ended(j Job) Result {
	return Result{
		JobDigest: j.Digest,
		State:     StateExited,
		ExitCode:  3,
		Reason:    "exited",
		Stdout:    []byte("\x00\xff"),
		Artifacts: []evidence.Ref{reference("x")},
	}
}

// overJSON sends v through its wire form.
func overJSON[T any](t *testing.T, v T) T {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestReceiptSignature(t *testing.T) {
	pub, key := newKey(t)
	otherPub, _ := newKey(t)
	r := accepted(t)
	r.AcceptedAt = time.Now().In(time.FixedZone("here", 5400)) // with a monotonic reading and an offset
	r.Capabilities.QualifiedUntil = r.AcceptedAt.Add(time.Minute)
	signed, err := SignReceipt(r, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := signed.Verify(pub); err != nil {
		t.Error(err)
	}
	if err := overJSON(t, signed).Verify(pub); err != nil {
		t.Errorf("over JSON: %v", err)
	}
	if err := signed.Verify(otherPub); !errors.Is(err, ErrMutated) {
		t.Errorf("with another key: %v", err)
	}
	for _, bad := range []ed25519.PublicKey{nil, {}, pub[:31]} {
		if err := signed.Verify(bad); err == nil {
			t.Errorf("verified with a key of %d bytes", len(bad))
		}
	}

	// What is signed, said without this package's message().
	signed.Signature = []byte{}
	plain, err := json.Marshal(signed)
	if err != nil || !bytes.Contains(plain, []byte(`"signature":""`)) {
		t.Fatalf("%v: %s", err, plain)
	}
	canonical, err := Canonical(json.RawMessage(plain))
	if err != nil {
		t.Fatal(err)
	}
	signed.Signature = ed25519.Sign(key, canonical)
	if err := signed.Verify(pub); err != nil {
		t.Errorf("signed by hand: %v", err)
	}

	r.Job.Env["LANG"] = "changed"
	if err := signed.Verify(pub); err != nil {
		t.Errorf("the receipt shares memory with what was signed: %v", err)
	}
}

func TestReceiptTampering(t *testing.T) {
	pub, key := newKey(t)
	for name, edit := range map[string]func(*Receipt){
		"schema":           func(r *Receipt) { r.SchemaVersion = 2 },
		"job's digest":     func(r *Receipt) { r.Job.Digest = image },
		"job's key":        func(r *Receipt) { r.Job.Key = "other" },
		"other job":        func(r *Receipt) { r.Job = seal(t, draft()) },
		"granted limits":   func(r *Receipt) { r.Capabilities.Limits.MemoryBytes++ },
		"qualification":    func(r *Receipt) { r.Capabilities.Qualification = "x" },
		"expiry":           func(r *Receipt) { r.Capabilities.QualifiedUntil = r.Capabilities.QualifiedUntil.Add(1) },
		"broker":           func(r *Receipt) { r.Broker = "broker-2" },
		"time":             func(r *Receipt) { r.AcceptedAt = r.AcceptedAt.Add(-1) },
		"no signature":     func(r *Receipt) { r.Signature = nil },
		"short signature":  func(r *Receipt) { r.Signature = r.Signature[:63] },
		"signature's bit":  func(r *Receipt) { r.Signature[10] ^= 1 },
		"longer signature": func(r *Receipt) { r.Signature = append(r.Signature, 0) },
	} {
		signed, err := SignReceipt(accepted(t), key)
		if err != nil {
			t.Fatal(err)
		}
		edit(&signed)
		if err := signed.Verify(pub); !errors.Is(err, ErrMutated) {
			t.Errorf("%s: Verify() = %v", name, err)
		}
	}
}

// TestReceiptRules shows that a broker's signature does not carry a receipt
// past the rules: neither signing nor verifying lets it through.
func TestReceiptRules(t *testing.T) {
	pub, key := newKey(t)
	for name, edit := range map[string]func(*Receipt){
		"schema":              func(r *Receipt) { r.SchemaVersion = 0 },
		"no broker":           func(r *Receipt) { r.Broker = "" },
		"no time":             func(r *Receipt) { r.AcceptedAt = time.Time{} },
		"mutated job":         func(r *Receipt) { r.Job.Key = "other" },
		"no qualification":    func(r *Receipt) { r.Capabilities.Qualification = "" },
		"expired by then":     func(r *Receipt) { r.AcceptedAt = r.Capabilities.QualifiedUntil },
		"limit above a grant": func(r *Receipt) { r.Capabilities.Limits.Processes-- },
	} {
		r := accepted(t)
		edit(&r)
		if _, err := SignReceipt(r, key); err == nil {
			t.Errorf("%s: signed", name)
		}
		message, err := r.message()
		if err != nil {
			t.Fatal(err)
		}
		r.Signature = ed25519.Sign(key, message)
		if err := r.Verify(pub); err == nil {
			t.Errorf("%s: verified", name)
		}
	}
}

// wrongSigner answers with a signature that its public key does not fit.
type wrongSigner struct{ ed25519.PrivateKey }

func (w wrongSigner) Sign(_ io.Reader, _ []byte, o crypto.SignerOpts) ([]byte, error) {
	return w.PrivateKey.Sign(nil, []byte("something else"), o)
}

// brokenSigner is a key service that is away.
type brokenSigner struct{ ed25519.PrivateKey }

func (brokenSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return nil, io.EOF }

func TestSignRefusesBadKeys(t *testing.T) {
	_, key := newKey(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]crypto.Signer{
		"none": nil, "other algorithm": curve, "wrong answer": wrongSigner{key}, "no answer": brokenSigner{key},
	} {
		if r, err := SignReceipt(accepted(t), bad); err == nil || r.Signature != nil {
			t.Errorf("%s: receipt signed, %v", name, err)
		}
		if r, err := SignResult(ended(accepted(t).Job), bad); err == nil || r.Signature != nil {
			t.Errorf("%s: result signed, %v", name, err)
		}
	}
}

func TestResultSignature(t *testing.T) {
	pub, key := newKey(t)
	otherPub, _ := newKey(t)
	r := ended(seal(t, draft()))
	signed, err := SignResult(r, key)
	if err != nil {
		t.Fatal(err)
	}
	r.Stdout[0], r.Artifacts[0].Size = 'x', 99
	if err := signed.Verify(pub); err != nil {
		t.Errorf("signed, and the source changed after: %v", err)
	}
	if err := overJSON(t, signed).Verify(pub); err != nil {
		t.Errorf("over JSON: %v", err)
	}
	if err := signed.Verify(otherPub); !errors.Is(err, ErrMutated) {
		t.Errorf("with another key: %v", err)
	}
	for name, edit := range map[string]func(*Result){
		"job":          func(r *Result) { r.JobDigest = image },
		"state":        func(r *Result) { r.State = StateFailed },
		"exit code":    func(r *Result) { r.ExitCode = 0 },
		"reason":       func(r *Result) { r.Reason = "cpu" },
		"stdout":       func(r *Result) { r.Stdout = nil },
		"stderr":       func(r *Result) { r.Stderr = []byte("x") },
		"artifact":     func(r *Result) { r.Artifacts = []evidence.Ref{reference("y")} },
		"no artifacts": func(r *Result) { r.Artifacts = nil },
		"no signature": func(r *Result) { r.Signature = nil },
	} {
		tampered := signed
		edit(&tampered)
		if err := tampered.Verify(pub); !errors.Is(err, ErrMutated) {
			t.Errorf("%s: Verify() = %v", name, err)
		}
	}
}

func TestResultRules(t *testing.T) {
	pub, key := newKey(t)
	for name, edit := range map[string]func(*Result){
		"no job":       func(r *Result) { r.JobDigest = "" },
		"no state":     func(r *Result) { r.State = "" },
		"running":      func(r *Result) { r.State = StateRunning },
		"no reason":    func(r *Result) { r.Reason = "" },
		"long reason":  func(r *Result) { r.Reason = strings.Repeat("x", 1025) },
		"escapes":      func(r *Result) { r.Reason = "\x1b[2J" },
		"bad artifact": func(r *Result) { r.Artifacts[0].Digest = "" },
	} {
		r := ended(seal(t, draft()))
		edit(&r)
		if _, err := SignResult(r, key); err == nil {
			t.Errorf("%s: signed", name)
		}
		message, err := r.message()
		if err != nil {
			t.Fatal(err)
		}
		r.Signature = ed25519.Sign(key, message)
		if err := r.Verify(pub); err == nil {
			t.Errorf("%s: verified", name)
		}
	}
}
