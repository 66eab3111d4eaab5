package watch

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/runsc"
)

// rig is a daemon in accelerated time (testing/synctest) on a machine made up
// for the test, with real files for what it publishes and keeps.
type rig struct {
	t   *testing.T
	d   *Daemon
	pub ed25519.PublicKey

	mu       sync.Mutex
	identity Identity
	readErr  error
	readIn   time.Duration // how long a look takes
	reloadIn time.Duration // and its other parts
	watchIn  time.Duration
	aliveIn  time.Duration
	booking  time.Duration // how long the ledger takes
	offset   time.Duration // by which the wall clock was set
	cfg      Config
	cfgErr   error
	outcome  func(Request) Result
	takes    time.Duration // a run
	runs     []Request
	busy     int // runs at this moment
	looks    int
	rereads  int
	unmarked string   // digest of the runtime that only reading whole shows
	extra    []string // further paths that the identity is read from
	watching []string // the paths that are watched
	events   chan struct{}
	notices  []Notice
	aliveErr error
	ledgerNo error
	beginNo  error
	meter    []time.Time
	here     Identity // as the meter shows it
	finished []string // runs that the ledger was told the end of
	told     []string // the service manager
	heart    time.Duration

	cancel context.CancelFunc
	ended  chan error
}

var boxed = Identity{
	Runtime: dig("runsc"), Config: dig("config"), EntryPoints: "deny-all", Guest: dig("guest"), Image: "empty", Kernel: "6.18.0",
	KernelVersion: "#1", BootID: "boot-1", CgroupMode: "version 2", KernelCommand: "quiet", SecurityModule: "capability", Harness: dig("harness"),
}

func dig(s string) string { return evidence.Digest([]byte(s)) }

// newRig is to be called inside a bubble.
func newRig(t *testing.T, change ...func(*rig)) *rig {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &rig{t: t, pub: pub, identity: boxed, takes: 12 * time.Second, events: make(chan struct{}, 1), ended: make(chan error, 1)}
	r.cfg = DefaultConfig()
	r.cfg.StateDir, r.cfg.Publish = filepath.Join(dir, "state"), filepath.Join(dir, "pub", "attestation.json")
	r.outcome = r.good
	for _, c := range change {
		c(r)
	}
	if err := os.MkdirAll(filepath.Join(r.cfg.StateDir, runsFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r.d, err = New(Options{
		Config: r.cfg, Reader: r, Suite: r, Publisher: &Publisher{Path: r.cfg.Publish, Key: key}, Files: r, Ledger: ledger{r}, Meter: r,
		Messengers: []Messenger{r}, Chance: func() float64 { return 0 }, Proc: dir, Heartbeat: r.heart,
		Tell: func(state string) { r.mu.Lock(); defer r.mu.Unlock(); r.told = append(r.told, state) },
		Reload: func() (Config, error) {
			time.Sleep(saw(r, &r.reloadIn))
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.cfg, r.cfgErr
		},
		Alive: func() error { time.Sleep(saw(r, &r.aliveIn)); return saw(r, &r.aliveErr) },
		Clock: Clock{
			Wall: func() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return time.Now().Add(r.offset).Round(0) },
			Mono: func() time.Duration { return time.Since(began) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start lets the daemon work until the test is over, and waits for the first
// run to begin.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel = cancel
	go func() { r.ended <- r.d.Run(ctx); close(r.ended) }()
	r.t.Cleanup(func() {
		cancel()
		<-r.ended
		time.Sleep(2 * time.Hour) // until a look ends that nobody waited for
	})
	synctest.Wait()
}

// stop ends the daemon and returns what it said.
func (r *rig) stop() error {
	r.cancel()
	return <-r.ended
}

// set changes the made up machine.
func (r *rig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// saw is what the daemon left on the machine so far.
func saw[T any](r *rig, of *T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *of
}

// event tells the daemon that something may have changed.
func (r *rig) event() {
	select {
	case r.events <- struct{}{}:
	default:
	}
	synctest.Wait()
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d) // of the bubble: no real time goes by
	synctest.Wait()
}

func (r *rig) count() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.runs) }

// published is what stands in the file, verified at the rig's own time.
func (r *rig) published() (attest.Statement, bool) {
	r.t.Helper()
	data, err := os.ReadFile(r.cfg.Publish)
	if errors.Is(err, fs.ErrNotExist) {
		return attest.Statement{}, false
	}
	if err != nil {
		r.t.Fatal(err)
	}
	a, err := attest.DecodeAttestation(data)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := attest.Verify(a, []ed25519.PublicKey{r.pub}, r.d.opt.Clock.Wall())
	if err != nil {
		r.t.Errorf("what is published: %v", err)
	}
	return s, true
}

func (r *rig) wantPublished() {
	r.t.Helper()
	if _, ok := r.published(); !ok {
		r.t.Fatalf("nothing is published: %s", r.d.Status().Why)
	}
	if s := r.d.Status(); s.Until == nil || s.Why != "" {
		r.t.Errorf("status: %+v", s)
	}
}

func (r *rig) wantWithdrawn(why string) {
	r.t.Helper()
	if _, ok := r.published(); ok {
		r.t.Errorf("still published, want it withdrawn: %s", why)
	}
	if s := r.d.Status(); s.Until != nil || !strings.Contains(s.Why, why) {
		r.t.Errorf("why is %q, want %q in it", s.Why, why)
	}
}

// good is a run that qualifies the identity that was asked.
func (r *rig) good(q Request) Result {
	now := r.d.opt.Clock.Wall()
	s := attest.Statement{
		Run: "run_" + q.ID, Outcome: hostile.Qualified, Issued: now, Expires: now.Add(q.ValidFor),
		Host:          attest.StatementHost{BootID: q.Identity.BootID, Kernel: q.Identity.Kernel},
		RuntimeDigest: q.Identity.Runtime, ConfigDigest: q.Identity.Config, ReportDigest: dig("report"), JUnitDigest: dig("junit"),
	}
	c := sandbox.Capabilities{
		SchemaVersion: 1, Runtime: sandbox.RuntimeRunsc, RuntimeDigest: s.RuntimeDigest, Profile: sandbox.ProfileDenyAll, Qualification: s.Run,
		QualifiedUntil: s.Expires, Limits: sandbox.DenyAllLimits(),
	}
	var err error
	if s.Capabilities, err = json.Marshal(c); err != nil {
		r.t.Error(err)
	}
	return Result{Outcome: hostile.Qualified, Run: s.Run, Statement: &s, Harness: q.Identity.Harness, Ended: now}
}

func (r *rig) ends(o hostile.Outcome, trouble string) func(Request) Result {
	return func(Request) Result {
		return Result{Outcome: o, Trouble: trouble, Ended: r.d.opt.Clock.Wall()}
	}
}

// Run implements Suite: a run takes its time, and ends early when it is told to.
func (r *rig) Run(ctx context.Context, q Request) Result {
	r.mu.Lock()
	r.runs = append(r.runs, q)
	takes, outcome := r.takes, r.outcome
	if r.busy++; r.busy > 1 {
		r.t.Error("two runs at once")
	}
	r.mu.Unlock()
	defer r.set(func() { r.busy-- })
	select {
	case <-time.After(takes):
		return outcome(q)
	case <-ctx.Done():
		return Result{Outcome: hostile.Unproven, Stopped: true, Trouble: context.Cause(ctx).Error(), Ended: r.d.opt.Clock.Wall()}
	}
}

// Read implements Reader.
func (r *rig) Read(string, bool) (Identity, Watched, error) {
	r.mu.Lock()
	takes := r.readIn
	r.looks++
	r.mu.Unlock()
	if takes > 0 {
		time.Sleep(takes)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readErr != nil {
		return Identity{}, Watched{}, r.readErr
	}
	return r.identity, Watched{Paths: append([]string{"/runsc"}, r.extra...)}, nil
}

// Reread implements Reader: what changed without a mark shows.
func (r *rig) Reread(string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rereads++
	if r.unmarked != "" {
		r.identity.Runtime = r.unmarked
	}
}

// Watch, Changed and Close implement Files.
func (r *rig) Watch(w Watched) (bool, error) {
	time.Sleep(saw(r, &r.watchIn))
	r.set(func() { r.watching = w.Paths })
	return false, nil
}
func (r *rig) Changed() <-chan struct{} { return r.events }
func (r *rig) Close() error             { return nil }

// Name and Deliver implement Messenger.
func (r *rig) Name() string { return "rig" }
func (r *rig) Deliver(_ context.Context, data []byte) error {
	var n Notice
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, n)
	return nil
}

// Ran, Published and Identified implement Meter.
func (r *rig) Ran(Request, Result)   {}
func (r *rig) Identified(i Identity) { r.set(func() { r.here = i }) }
func (r *rig) Published(u time.Time) { r.mu.Lock(); defer r.mu.Unlock(); r.meter = append(r.meter, u) }

// ledger is one that can fail.
type ledger struct{ r *rig }

func (l ledger) Begin(Request) error {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.r.beginNo
}
func (l ledger) Finish(q Request, _ Result) error {
	time.Sleep(saw(l.r, &l.r.booking))
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.finished = append(l.r.finished, q.ID)
	return l.r.ledgerNo
}

func seconds(n int) runsc.Duration { return runsc.Duration(time.Duration(n) * time.Second) }
