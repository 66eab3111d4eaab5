// Package admission answers a broker's question: may this job run here, now?
//
// The answer is yes only under the attestation that harness watch publishes in
// one file: signed by a trusted key, not expired, of a qualified run, about this
// boot of this kernel, about the very runsc and runner configuration that the
// broker is going to use, and with limits that cover the job. Everything else is
// a [Refusal] that says why. What cannot be told is a refusal too.
//
// What this package does not prove: that the walls stand at the moment of the
// answer. It proves what a trusted key said less than a publication's life ago,
// and that the host has not changed since in what is compared. Who can write the
// folder of the file can put an older attestation back for as long as that has
// not expired; who holds the key can say anything. Between the answer and the
// start of the job things can change: ask again at the start (the runner of
// sandbox/runsc does, through its Vouch).
package admission

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/filedigest"
)

// Reason is why a job may not run. The list is closed.
type Reason string

// Reasons.
const (
	Withdrawn     Reason = "withdrawn"     // nothing is published
	Unreadable    Reason = "unreadable"    // the file cannot be read, or is none of ours
	Untrusted     Reason = "untrusted"     // no trusted key signed it
	Expired       Reason = "expired"       // or not renewed in time by a clock that cannot be set
	Clock         Reason = "clock"         // issued in the future: this host's clock went back
	Unqualified   Reason = "unqualified"   // of a run that qualifies nothing
	OtherBoot     Reason = "boot"          // about another host, or restarted since
	OtherKernel   Reason = "kernel"        // about another kernel
	OtherRuntime  Reason = "runtime"       // about another runsc binary
	OtherConfig   Reason = "configuration" // about another runner configuration
	Unknown       Reason = "unknown"       // this host cannot be looked at
	BeyondTheJob  Reason = "job"           // the job itself is at fault
	BeyondTheHost Reason = "limits"        // the job is beyond what is granted
)

// Refusal is an answer of no. It is also [sandbox.ErrUnqualified].
type Refusal struct {
	Reason Reason
	Err    error // in words, for people
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("not admitted (%s): %v", r.Reason, r.Err)
}

// Unwrap lets errors.Is find what is behind it.
func (r *Refusal) Unwrap() []error { return []error{sandbox.ErrUnqualified, r.Err} }

func no(reason Reason, format string, args ...any) error {
	return &Refusal{reason, fmt.Errorf(format, args...)}
}

// Options are what an answer is given by.
type Options struct {
	File   string                 // what harness watch publishes
	Keys   []ed25519.PublicKey    // trusted; from another place than File
	Runsc  string                 // the binary that the broker's runner starts
	Config func() (string, error) // digest of the configuration that it reads (runsc.Config.Digest); nil: not compared
	Host   func() (Host, error)   // nil: [ThisHost]
	Now    func() time.Time       // nil: time.Now; its monotonic reading is used where it has one
}

// Host is what an attestation is compared with.
type Host struct {
	BootID string // /proc/sys/kernel/random/boot_id
	Kernel string // uname -r
}

// Gate answers. Its methods may be called from any goroutine.
type Gate struct {
	opt     Options
	digests filedigest.Cache

	mu   sync.Mutex
	data []byte // last that was verified
	seen time.Time
	s    attest.Statement
	c    sandbox.Capabilities
}

// New returns a gate. It reads nothing yet: what is not there is a refusal at
// each question, and may be there at the next.
func New(o Options) (*Gate, error) {
	switch {
	case o.File == "" || o.Runsc == "":
		return nil, errors.New("new gate: the published file and the runsc binary have to be named")
	case len(o.Keys) == 0:
		return nil, errors.New("new gate: no trusted key: nothing would ever be admitted")
	}
	if o.Host == nil {
		o.Host = ThisHost
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gate{opt: o}, nil
}

// Ask returns nil when the job may run here, now, else a [*Refusal].
func (g *Gate) Ask(job sandbox.Job) error {
	c, err := g.Capabilities()
	if err != nil {
		return err
	}
	if err := job.Validate(); err != nil {
		return no(BeyondTheJob, "%w", err)
	}
	if err := c.SupportsAt(job, g.opt.Now()); err != nil {
		return no(BeyondTheHost, "%w", err)
	}
	return nil
}

// Capabilities returns what is granted here, now, or a [*Refusal]. It is what
// runsc.Options wants as Vouch.
func (g *Gate) Capabilities() (sandbox.Capabilities, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opt.Now()
	data, err := read(g.opt.File)
	if err != nil {
		g.data = nil
		return sandbox.Capabilities{}, err
	}
	if g.data == nil || !bytes.Equal(data, g.data) {
		g.data = nil
		if err := g.verify(data, now); err != nil {
			return sandbox.Capabilities{}, err
		}
		g.data, g.seen = data, now
	}
	if err := g.current(now); err != nil {
		return sandbox.Capabilities{}, err
	}
	return g.c, nil
}

// verify takes in bytes that were not seen before.
func (g *Gate) verify(data []byte, now time.Time) error {
	a, err := attest.DecodeAttestation(data)
	if err != nil {
		return no(Unreadable, "%s: %w", g.opt.File, err)
	}
	s, err := attest.Verify(a, g.opt.Keys, now)
	switch {
	case errors.Is(err, attest.ErrSignature):
		return no(Untrusted, "%s: %w", g.opt.File, err)
	case errors.Is(err, attest.ErrExpired):
		return no(Expired, "%s: %w: harness status says why it was not renewed", g.opt.File, err)
	case errors.Is(err, attest.ErrNotYet):
		return no(Clock, "%s: %w", g.opt.File, err)
	case err != nil:
		return no(Unreadable, "%s: %w", g.opt.File, err)
	case s.Outcome != hostile.Qualified || len(s.Capabilities) == 0:
		return no(Unqualified, "%s is of run %s, which was %s and qualifies nothing", g.opt.File, s.Run, s.Outcome)
	}
	var c sandbox.Capabilities
	dec := json.NewDecoder(bytes.NewReader(s.Capabilities))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return no(Unreadable, "%s: capabilities: %w", g.opt.File, err)
	}
	if c.RuntimeDigest != s.RuntimeDigest {
		return no(Unreadable, "%s: its capabilities are about %s, its statement about %s", g.opt.File, c.RuntimeDigest, s.RuntimeDigest)
	}
	g.s, g.c = s, c
	return nil
}

// backBy is how far the clock of this host may be behind that of the signer,
// which is the same one: whole seconds, and a little slewing.
const backBy = 2 * time.Second

// current checks what can change while the file stays the same.
func (g *Gate) current(now time.Time) error {
	life := g.s.Expires.Sub(g.s.Issued)
	switch {
	case !now.Before(g.s.Expires):
		return no(Expired, "%s: %w at %s: harness status says why it was not renewed", g.opt.File, attest.ErrExpired, g.s.Expires.Format(time.RFC3339))
	case now.Sub(g.seen) >= life: // by the monotonic clock: setting the other back gains nothing
		return no(Expired, "%s: %w: seen for %s, longer than its whole life", g.opt.File, attest.ErrExpired, now.Sub(g.seen).Round(time.Second))
	case g.s.Issued.Sub(now) > backBy:
		return no(Clock, "%s was issued at %s, and here it is %s: this host's clock went back", g.opt.File, g.s.Issued.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	host, err := g.opt.Host()
	switch {
	case err != nil:
		return no(Unknown, "%w", err)
	case host.BootID != g.s.Host.BootID:
		return no(OtherBoot, "qualified in boot %s, this is boot %s: another host, or restarted since", g.s.Host.BootID, host.BootID)
	case host.Kernel != g.s.Host.Kernel:
		return no(OtherKernel, "qualified on kernel %s, this is %s", g.s.Host.Kernel, host.Kernel)
	}
	digest, err := g.digests.Digest(g.opt.Runsc)
	switch {
	case err != nil:
		return no(Unknown, "runsc: %w", err)
	case digest != g.s.RuntimeDigest:
		return no(OtherRuntime, "qualified for runsc %s, but %s is %s", g.s.RuntimeDigest, g.opt.Runsc, digest)
	}
	if g.opt.Config == nil {
		return nil
	}
	config, err := g.opt.Config()
	switch {
	case err != nil:
		return no(Unknown, "runner configuration: %w", err)
	case config != g.s.ConfigDigest:
		return no(OtherConfig, "qualified for runner configuration %s, here it is %s", g.s.ConfigDigest, config)
	}
	return nil
}

// maxFile bounds what is read, in bytes.
const maxFile = 1 << 20

// read reads a regular file. Without O_NONBLOCK a named pipe would hold us.
func read(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, no(Withdrawn, "nothing is published in %s: harness status says why", file)
	case err != nil:
		return nil, no(Unreadable, "%w", err)
	}
	defer f.Close() // read only
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, no(Unreadable, "%s is no regular file", file)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, no(Unreadable, "%w", err)
	}
	if len(data) > maxFile {
		return nil, no(Unreadable, "%s holds more than %d bytes", file, maxFile)
	}
	return data, nil
}

// ThisHost reads what an attestation about this host has to say.
func ThisHost() (Host, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Host{}, fmt.Errorf("this host's boot id: %w", err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease") // as uname(2) says it
	if err != nil {
		return Host{}, fmt.Errorf("this host's kernel: %w", err)
	}
	return Host{string(bytes.TrimSpace(boot)), string(bytes.TrimSpace(kernel))}, nil
}
