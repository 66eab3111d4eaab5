package attest

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

	"github.com/google/go-cmp/cmp"
	"tenwalls.dev/harness/hostile"
)

var signedAt = time.Date(2026, 3, 4, 5, 6, 7, 890, time.FixedZone("here", 7200))

func exampleStatement() Statement {
	return Statement{
		Run: "run_01jnf4zd0yfq3t9ck5t8q7w2ab", Outcome: hostile.Qualified, Issued: signedAt, Expires: signedAt.Add(24 * time.Hour),
		Host:          StatementHost{BootID: "5d1f2b7e", Kernel: "6.18.2"},
		RuntimeDigest: exampleDigest("1"), ConfigDigest: exampleDigest("2"), ReportDigest: exampleDigest("3"), JUnitDigest: exampleDigest("4"),
		Capabilities: json.RawMessage(`{ "runtime": "runsc", "limits": {"cpu_millis": 2000, "a<b": 1} }`),
	}
}

func newKey(t testing.TB) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pub, priv
}

func mustSign(t testing.TB, s Statement, key crypto.Signer) Attestation {
	t.Helper()
	a, err := Sign(s, key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSignThenVerify(t *testing.T) {
	pub, priv := newKey(t)
	other, _ := newKey(t)
	a := mustSign(t, exampleStatement(), priv)
	got, err := Verify(a, []ed25519.PublicKey{nil, other, pub}, signedAt.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := exampleStatement()
	want.Schema = StatementSchema
	want.Issued, want.Expires = want.Issued.UTC().Truncate(time.Second), want.Expires.UTC().Truncate(time.Second)
	want.Capabilities = json.RawMessage(`{"limits":{"a<b":1,"cpu_millis":2000},"runtime":"runsc"}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
	if !bytes.HasPrefix(a.Payload, []byte(`{"capabilities":{"limits":{`)) || bytes.ContainsAny(a.Payload, "\n ") {
		t.Errorf("payload is not canonical: %s", a.Payload)
	}
}

func TestVerifyInTime(t *testing.T) {
	pub, priv := newKey(t)
	s := exampleStatement()
	a := mustSign(t, s, priv)
	issued, expires := s.Issued.Truncate(time.Second), s.Expires.Truncate(time.Second)
	for name, c := range map[string]struct {
		now  time.Time
		want error
	}{
		"at once":                {issued, nil},
		"just before the end":    {expires.Add(-time.Nanosecond), nil},
		"at the end":             {expires, ErrExpired},
		"long after":             {expires.AddDate(10, 0, 0), ErrExpired},
		"clock behind by 5 min":  {issued.Add(-maxSkew), nil},
		"clock behind by longer": {issued.Add(-maxSkew - time.Nanosecond), ErrNotYet},
	} {
		got, err := Verify(a, []ed25519.PublicKey{pub}, c.now)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err != nil && got.Run != "" {
			t.Errorf("%s: an unverified statement was returned", name)
		}
	}
}

func TestVerifyUnderAnotherKey(t *testing.T) {
	pub, priv := newKey(t)
	other, _ := newKey(t)
	a := mustSign(t, exampleStatement(), priv)
	forged := a
	id, err := KeyID(other)
	if err != nil {
		t.Fatal(err)
	}
	forged.KeyID = id
	stub := a
	if stub.KeyID, err = KeyID(pub[:31]); err != nil {
		t.Fatal(err)
	}
	unsigned := a
	unsigned.Signature = nil
	for name, c := range map[string]struct {
		a    Attestation
		keys []ed25519.PublicKey
	}{
		"no keys":                 {a, nil},
		"another key":             {a, []ed25519.PublicKey{other}},
		"another key's id":        {forged, []ed25519.PublicKey{pub, other}},
		"no signature":            {unsigned, []ed25519.PublicKey{pub}},
		"a key of another length": {stub, []ed25519.PublicKey{pub[:31]}},
	} {
		if _, err := Verify(c.a, c.keys, signedAt); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every bit of the file counts.
func TestTamperWithAnyByte(t *testing.T) {
	pub, priv := newKey(t)
	file, err := mustSign(t, exampleStatement(), priv).Encode()
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(data []byte) bool {
		a, err := DecodeAttestation(data)
		if err != nil {
			return false
		}
		_, err = Verify(a, []ed25519.PublicKey{pub}, signedAt)
		return err == nil
	}
	if !accepted(file) {
		t.Fatal("the file as written is refused")
	}
	for i := range file {
		for bit := range 8 {
			bad := bytes.Clone(file)
			bad[i] ^= 1 << bit
			if accepted(bad) {
				t.Fatalf("byte %d, bit %d changed and accepted", i, bit)
			}
		}
		if accepted(file[:i]) || accepted(append(bytes.Clone(file[:i]), file[i+1:]...)) {
			t.Fatalf("byte %d or all from it removed and accepted", i)
		}
	}
	for _, more := range []string{" ", "\n", "{}", "\x00"} {
		if accepted(append(bytes.Clone(file), more...)) || accepted(append([]byte(more), file...)) {
			t.Errorf("%q added and accepted", more)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	_, priv := newKey(t)
	for name, c := range map[string]struct {
		change func(s *Statement)
		want   string
	}{
		"no run":                  {func(s *Statement) { s.Run = "" }, "run is empty"},
		"no host":                 {func(s *Statement) { s.Host = StatementHost{} }, "host/boot_id is empty"},
		"no report digest":        {func(s *Statement) { s.ReportDigest = "" }, "report_digest"},
		"digest in capitals":      {func(s *Statement) { s.RuntimeDigest = strings.ToUpper(s.RuntimeDigest) }, "runtime_digest"},
		"unknown outcome":         {func(s *Statement) { s.Outcome = "fine" }, "outcome"},
		"ends before it begins":   {func(s *Statement) { s.Expires = s.Issued.Add(time.Millisecond) }, "expires"},
		"capabilities of refused": {func(s *Statement) { s.Outcome = hostile.Refused }, "capabilities beside"},
		"capabilities a list":     {func(s *Statement) { s.Capabilities = json.RawMessage(`[1]`) }, "not an object"},
		"capabilities cut":        {func(s *Statement) { s.Capabilities = json.RawMessage(`{"a":`) }, "capabilities"},
		"number that rounds":      {func(s *Statement) { s.Capabilities = json.RawMessage(`{"a":{"b":9007199254740993}}`) }, "9007199254740993"},
		"number with a fraction":  {func(s *Statement) { s.Capabilities = json.RawMessage(`{"a":[0.1]}`) }, "0.1"},
		"field twice":             {func(s *Statement) { s.Capabilities = json.RawMessage(`{"a":1,"a":2}`) }, "uplicate"},
	} {
		s := exampleStatement()
		c.change(&s)
		if _, err := Sign(s, priv); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// liar is a key service that answers with another key's signature.
type liar struct{ says, signs crypto.Signer }

func (l liar) Public() crypto.PublicKey { return l.says.Public() }
func (l liar) Sign(r io.Reader, m []byte, o crypto.SignerOpts) ([]byte, error) {
	return l.signs.Sign(r, m, o)
}

func TestSignWithAnotherKindOfSigner(t *testing.T) {
	_, one := newKey(t)
	_, two := newKey(t)
	if _, err := Sign(exampleStatement(), liar{one, two}); err == nil || !strings.Contains(err.Error(), "does not verify") {
		t.Errorf("liar: %v", err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(exampleStatement(), ec); err == nil || !strings.Contains(err.Error(), "not Ed25519") {
		t.Errorf("ecdsa: %v", err)
	}
}

// A trusted key's signature over something else is no attestation.
func TestVerifyRefusesOtherPayloads(t *testing.T) {
	pub, priv := newKey(t)
	good := string(mustSign(t, exampleStatement(), priv).Payload)
	for name, payload := range map[string]string{
		"another schema": strings.Replace(good, "statement/v1", "statement/v2", 1),
		"a receipt":      `{"broker":"b","schema_version":1}`,
		"not canonical":  strings.Replace(good, `{"capabilities"`, `{ "capabilities"`, 1),
		"trailing":       good + "{}",
		"unknown field":  strings.Replace(good, `"run":`, `"ran":1,"run":`, 1),
		"no json":        "hello",
		"refused":        strings.Replace(good, `"qualified"`, `"refused"`, 1),
	} {
		id, err := KeyID(pub)
		if err != nil {
			t.Fatal(err)
		}
		a := Attestation{Payload: []byte(payload), KeyID: id, Signature: ed25519.Sign(priv, []byte(payload))}
		if s, err := Verify(a, []ed25519.PublicKey{pub}, signedAt); err == nil || s.Run != "" {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecodeAttestation(f *testing.F) {
	_, priv := newKey(f)
	file, err := mustSign(f, exampleStatement(), priv).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := DecodeAttestation(data)
		if err != nil {
			return
		}
		if again, err := a.Encode(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("two forms of one attestation: %v", err)
		}
	})
}
