package admission

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

var here = Host{BootID: "boot-1", Kernel: "6.18.0"}

// place is a host with a daemon's file on it.
type place struct {
	t     *testing.T
	key   ed25519.PrivateKey
	now   time.Time
	host  Host
	file  string
	runsc string
	conf  string
	gate  *Gate
}

func newPlace(t *testing.T) *place {
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &place{t: t, key: key, now: time.Now(), host: here, file: filepath.Join(dir, "attestation.json"), runsc: filepath.Join(dir, "runsc"), conf: evidence.Digest([]byte("config"))}
	p.write(p.runsc, []byte("runsc"))
	p.gate, err = New(Options{
		File: p.file, Keys: []ed25519.PublicKey{pub}, Runsc: p.runsc, Now: func() time.Time { return p.now },
		Host: func() (Host, error) { return p.host, nil }, Config: func() (string, error) { return p.conf, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.publish(p.statement(), key)
	return p
}

func (p *place) write(file string, data []byte) {
	p.t.Helper()
	if err := os.WriteFile(file, data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) statement() attest.Statement {
	p.t.Helper()
	digest := evidence.Digest([]byte("runsc"))
	s := attest.Statement{
		Run: "run_1", Outcome: hostile.Qualified, Issued: p.now, Expires: p.now.Add(time.Minute),
		Host:          attest.StatementHost{BootID: here.BootID, Kernel: here.Kernel},
		RuntimeDigest: digest, ConfigDigest: evidence.Digest([]byte("config")), ReportDigest: digest, JUnitDigest: digest,
	}
	c, err := json.Marshal(sandbox.Capabilities{
		SchemaVersion: sandbox.SchemaVersion, Runtime: sandbox.RuntimeRunsc, RuntimeDigest: digest, Profile: sandbox.ProfileDenyAll,
		Qualification: "run_1", QualifiedUntil: s.Expires.UTC().Truncate(time.Second), Limits: sandbox.DenyAllLimits(),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	s.Capabilities = c
	return s
}

func (p *place) publish(s attest.Statement, key ed25519.PrivateKey) {
	p.t.Helper()
	a, err := attest.Sign(s, key)
	if err != nil {
		p.t.Fatal(err)
	}
	data, err := a.Encode()
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(p.file, data)
}

func job(t *testing.T, limits sandbox.Limits) sandbox.Job {
	t.Helper()
	j, err := sandbox.Seal(sandbox.Job{
		SchemaVersion: sandbox.SchemaVersion, ID: id.New(sandbox.PrefixJob), Key: "k", Scope: sandbox.Scope{Tenant: "t", Project: "p"}, Principal: "somebody",
		Image: evidence.Digest([]byte("image")), Argv: []string{"/bin/true"}, Network: sandbox.NetworkDenied, Limits: limits,
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestAJobIsAdmittedUnderWhatIsPublished(t *testing.T) {
	p := newPlace(t)
	if err := p.gate.Ask(job(t, sandbox.DenyAllLimits())); err != nil {
		t.Fatal(err)
	}
	c, err := p.gate.Capabilities()
	if err != nil || c.Limits != sandbox.DenyAllLimits() {
		t.Errorf("%+v, %v", c, err)
	}
}

// Each case changes one thing under a gate that has admitted before.
func TestEveryChangeIsRefusedByItsReason(t *testing.T) {
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(p *place)
		reason Reason
		words  string
	}{
		"withdrawn":          {func(p *place) { os.Remove(p.file) }, Withdrawn, "nothing is published"},
		"a folder":           {func(p *place) { os.Remove(p.file); os.Mkdir(p.file, 0o755) }, Unreadable, "no regular file"},
		"damaged":            {func(p *place) { p.write(p.file, []byte("{}")) }, Unreadable, "decode attestation"},
		"huge":               {func(p *place) { p.write(p.file, make([]byte, maxFile+1)) }, Unreadable, "more than"},
		"another key":        {func(p *place) { p.publish(p.statement(), stranger) }, Untrusted, "not signed by a trusted key"},
		"expired":            {func(p *place) { p.now = p.now.Add(61 * time.Second).Round(0) }, Expired, "expired at"},
		"expired before":     {func(p *place) { s := p.statement(); p.now = p.now.Add(2 * time.Minute); p.publish(s, p.key) }, Expired, "has expired"},
		"clock back":         {func(p *place) { p.now = p.now.Add(-10 * time.Second).Round(0) }, Clock, "went back"},
		"clock back an hour": {func(p *place) { p.now = p.now.Add(-time.Hour); p.publish(later(p, time.Hour), p.key) }, Clock, "issued in the future"},
		"refused run": {func(p *place) {
			s := p.statement()
			s.Outcome, s.Capabilities = hostile.Refused, nil
			p.publish(s, p.key)
		}, Unqualified, "qualifies nothing"},
		"a selection":    {func(p *place) { s := p.statement(); s.Capabilities = nil; p.publish(s, p.key) }, Unqualified, "qualifies nothing"},
		"another boot":   {func(p *place) { p.host.BootID = "boot-2" }, OtherBoot, "boot-2"},
		"another kernel": {func(p *place) { p.host.Kernel = "6.19.0" }, OtherKernel, "6.19.0"},
		"another runsc":  {func(p *place) { p.write(p.runsc, []byte("other")) }, OtherRuntime, "qualified for runsc"},
		"no runsc":       {func(p *place) { os.Remove(p.runsc) }, Unknown, "no such file"},
		"another config": {func(p *place) { p.conf = evidence.Digest([]byte("other")) }, OtherConfig, "runner configuration"},
		"mixed capabilities": {func(p *place) {
			s := p.statement()
			s.RuntimeDigest = evidence.Digest([]byte("other"))
			p.publish(s, p.key)
		}, Unreadable, "its capabilities are about"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			j := job(t, sandbox.DenyAllLimits())
			if err := p.gate.Ask(j); err != nil {
				t.Fatal(err)
			}
			c.change(p)
			refused(t, p.gate.Ask(j), c.reason, c.words)
		})
	}
}

func later(p *place, by time.Duration) attest.Statement {
	s := p.statement()
	s.Issued, s.Expires = s.Issued.Add(by), s.Expires.Add(by)
	return s
}

func refused(t *testing.T, err error, reason Reason, words string) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || r.Reason != reason || !strings.Contains(err.Error(), words) || !errors.Is(err, sandbox.ErrUnqualified) {
		t.Errorf("%v, want the reason %s with %q", err, reason, words)
	}
}

// The wall clock is held still: only the monotonic one tells that nobody renews.
func TestAStoppedClockDoesNotKeepItAlive(t *testing.T) {
	p := newPlace(t)
	j := job(t, sandbox.DenyAllLimits())
	if err := p.gate.Ask(j); err != nil {
		t.Fatal(err)
	}
	p.gate.seen = p.gate.seen.Add(-2 * time.Minute)
	refused(t, p.gate.Ask(j), Expired, "longer than its whole life")
	p.now = p.now.Add(time.Second)
	p.publish(p.statement(), p.key) // renewed
	if err := p.gate.Ask(j); err != nil {
		t.Error(err)
	}
}

func TestAJobBeyondTheGrantIsRefused(t *testing.T) {
	p := newPlace(t)
	l := sandbox.DenyAllLimits()
	l.MemoryBytes *= 2
	refused(t, p.gate.Ask(job(t, l)), BeyondTheHost, "memory_bytes")
	j := job(t, sandbox.DenyAllLimits())
	j.Argv = []string{"/bin/false"}
	refused(t, p.gate.Ask(j), BeyondTheJob, "digest is not")
}

func TestAGateNeedsItsTrust(t *testing.T) {
	for name, o := range map[string]Options{
		"no key":   {File: "f", Runsc: "r"},
		"no file":  {Runsc: "r", Keys: []ed25519.PublicKey{make([]byte, 32)}},
		"no runsc": {File: "f", Keys: []ed25519.PublicKey{make([]byte, 32)}},
	} {
		if g, err := New(o); err == nil {
			t.Errorf("%s: %v", name, g)
		}
	}
}

func TestThisHostIsTheKernels(t *testing.T) {
	h, err := ThisHost()
	if err != nil || len(h.BootID) != 36 || h.Kernel == "" {
		t.Errorf("%+v, %v", h, err)
	}
}
