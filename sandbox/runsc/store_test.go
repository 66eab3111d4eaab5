package runsc

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// testKey is one of the runner's keys, the nth after so many rotations.
func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func ringOf(t *testing.T, key ed25519.PrivateKey, former ...ed25519.PublicKey) keyring {
	t.Helper()
	k, err := newKeyring(key, former)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// resultOf is the signed result with which the job of r ended so.
func resultOf(t *testing.T, r record, state sandbox.State, key ed25519.PrivateKey) *sandbox.Result {
	t.Helper()
	res, err := sandbox.SignResult(sandbox.Result{JobDigest: r.Status.Receipt.Job.Digest, State: state, Reason: "test", Stdout: []byte("said")}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &res
}

// acceptedRecord is a new job's record, as accept stores it.
func acceptedRecord(t testing.TB, change func(*sandbox.Job)) record {
	t.Helper()
	now := time.Now().UTC()
	j := sandbox.Job{
		SchemaVersion: 1, ID: id.New(sandbox.PrefixJob), Scope: sandbox.Scope{Tenant: "test", Project: "store"}, Principal: "tester",
		Image: evidence.Digest([]byte("image")), Argv: []string{"/bin/true"}, Network: sandbox.NetworkDenied, Limits: DefaultConfig().Limits.Limits(),
	}
	j.Key = string(j.ID)
	if change != nil {
		change(&j)
	}
	j, err := sandbox.Seal(j)
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := sandbox.SignReceipt(sandbox.Receipt{
		SchemaVersion: 1, Job: j, Broker: "test", AcceptedAt: now,
		Capabilities: sandbox.Capabilities{
			SchemaVersion: 1, Runtime: sandbox.RuntimeRunsc, RuntimeDigest: evidence.Digest([]byte("runsc")), Profile: sandbox.ProfileDenyAll,
			Qualification: "test", QualifiedUntil: now.Add(time.Minute), Limits: j.Limits,
		},
	}, testKey(0))
	if err != nil {
		t.Fatal(err)
	}
	return record{Status: sandbox.JobStatus{Receipt: receipt, State: sandbox.StateAccepted, Revision: 1, UpdatedAt: now}, Dir: "/d", Cgroup: "/c"}
}

func openTestStore(t *testing.T) (*store, string) {
	t.Helper()
	file := stateFile(t.TempDir())
	s, err := openStore(file, ringOf(t, testKey(0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s, file
}

func TestStoreAccept(t *testing.T) {
	s, _ := openTestStore(t)
	r := acceptedRecord(t, nil)
	job := r.Status.Receipt.Job
	if got, fresh, err := s.accept(r); err != nil || !fresh || got.Status.Receipt.Job.Digest != job.Digest {
		t.Fatalf("accept: fresh %t, %v", fresh, err)
	}
	again := r
	again.Dir = "/elsewhere"
	if got, fresh, err := s.accept(again); err != nil || fresh || got.Dir != "/d" {
		t.Errorf("the same job again: fresh %t, folder %s, %v", fresh, got.Dir, err)
	}
	other := acceptedRecord(t, func(j *sandbox.Job) { j.Key = job.Key })
	if _, fresh, err := s.accept(other); !errors.Is(err, sandbox.ErrConflict) || fresh {
		t.Errorf("another job under the key: fresh %t, %v", fresh, err)
	}
	taken := acceptedRecord(t, func(j *sandbox.Job) { j.ID = job.ID })
	if _, fresh, err := s.accept(taken); !errors.Is(err, sandbox.ErrConflict) || fresh {
		t.Errorf("another job under the identity: fresh %t, %v", fresh, err)
	}
	running := acceptedRecord(t, nil)
	running.Status.State = sandbox.StateRunning
	if _, _, err := s.accept(running); err == nil {
		t.Error("a job that runs already is accepted")
	}
	// The refused ones left nothing, not even their key.
	for _, refused := range []record{other, running} {
		if _, err := s.find(refused.Status.Receipt.Job.ID); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("find a refused job: %v", err)
		}
	}
	running.Status.State = sandbox.StateAccepted
	if _, fresh, err := s.accept(running); err != nil || !fresh {
		t.Errorf("accept after a refusal: fresh %t, %v", fresh, err)
	}
	n := 0
	if err := s.each(func(record) error { n++; return nil }); err != nil || n != 2 {
		t.Errorf("%d records, %v", n, err)
	}
}

func TestStoreChange(t *testing.T) {
	s, _ := openTestStore(t)
	r := acceptedRecord(t, nil)
	job := r.Status.Receipt.Job.ID
	if _, _, err := s.accept(r); err != nil {
		t.Fatal(err)
	}
	// A clock that was set back changes nothing.
	early := time.Unix(0, 0)
	to := func(state sandbox.State) error {
		_, err := s.change(job, early, func(r *record) error {
			r.Status.State, r.Status.Revision = state, 77 // the store counts, nobody else
			if state.Terminal() {
				r.Result = resultOf(t, *r, state, testKey(0))
			}
			return nil
		})
		return err
	}
	for i, c := range []struct {
		state sandbox.State
		ok    bool
		rev   uint64
	}{
		{sandbox.StateRunning, true, 2}, {sandbox.StateAccepted, false, 2}, {"unheard of", false, 2},
		{sandbox.StateExited, true, 3}, {sandbox.StateRunning, false, 3}, {sandbox.StateFailed, false, 3},
	} {
		before, err := s.find(job)
		if err != nil {
			t.Fatal(err)
		}
		if err := to(c.state); (err == nil) != c.ok {
			t.Errorf("%d: to %s: %v", i, c.state, err)
		}
		now, err := s.find(job)
		if err != nil || now.Status.Revision != c.rev || (!c.ok && now.Status.State != before.Status.State) {
			t.Errorf("%d: state %s revision %d, %v", i, now.Status.State, now.Status.Revision, err)
		}
	}
	if _, err := s.change(job, early, func(r *record) error { r.Result = nil; return nil }); err == nil {
		t.Error("an ended job is stored without its result")
	}
	if _, err := s.change(job, early, func(r *record) error { r.Detail = "x"; return errors.New("no") }); err == nil {
		t.Error("the error of a change is lost")
	}
	if now, _ := s.find(job); now.Detail != "" {
		t.Error("a change that failed is stored")
	}
	if _, err := s.change("sjob_absent", early, func(*record) error { return nil }); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("change of a job that is not there: %v", err)
	}
	if _, err := s.find(""); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("find without an identity: %v", err)
	}
}

// A file that is cut short at any page, or overwritten, is told of or whole: it
// is never believed in part, and never written to.
func TestStoreLeavesDamagedFilesAlone(t *testing.T) {
	const jobs = 20
	s, file := openTestStore(t)
	for range jobs {
		r := acceptedRecord(t, nil)
		r.Detail = strings.Repeat("x", 10<<10) // several pages each
		if _, _, err := s.accept(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	zeroed := bytes.Clone(whole)
	clear(zeroed[:8192]) // both meta pages
	bad := [][]byte{[]byte("not a database, and longer than nothing"), zeroed, whole[:100]}
	for cut := 4096; cut < len(whole); cut += 4096 {
		bad = append(bad, whole[:cut])
	}
	told := 0
	for i, data := range bad {
		file := filepath.Join(t.TempDir(), "jobs.db")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openStore(file, ringOf(t, testKey(0)))
		if err == nil {
			n := 0
			if err := errors.Join(s.each(func(record) error { n++; return nil }), s.close()); err != nil || n != jobs {
				t.Errorf("%d, %d bytes: opened with %d of %d records, %v", i, len(data), n, jobs, err)
			}
			continue
		}
		told++
		if !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d, %d bytes: %v", i, len(data), err)
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, data) {
			t.Errorf("%d, %d bytes: the file was changed (%v)", i, len(data), err)
		}
	}
	if told < 6 {
		t.Errorf("only %d of %d damaged files were told", told, len(bad))
	}
}

func TestStoreHasOneWriter(t *testing.T) {
	s, file := openTestStore(t)
	if _, err := openStore(file, ringOf(t, testKey(0))); err == nil || !strings.Contains(err.Error(), "another runner holds it") || !strings.Contains(err.Error(), file) {
		t.Errorf("second opener: %v", err)
	}
	if _, _, err := s.accept(acceptedRecord(t, nil)); err != nil {
		t.Errorf("the first is harmed: %v", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openStore(file, ringOf(t, testKey(0)))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}
