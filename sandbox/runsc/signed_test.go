package runsc

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

// stateOf is a state file with one record that was accepted and one whose job
// ran to its end, closed again, and the ids of both.
func stateOf(t *testing.T) (file string, accepted, ended id.ID) {
	t.Helper()
	s, file := openTestStore(t)
	a, e := acceptedRecord(t, nil), acceptedRecord(t, nil)
	accepted, ended = a.Status.Receipt.Job.ID, e.Status.Receipt.Job.ID
	for _, r := range []record{a, e} {
		if _, _, err := s.accept(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []sandbox.State{sandbox.StateRunning, sandbox.StateFailed} {
		if _, err := s.change(ended, time.Now(), func(r *record) error {
			if r.Status.State = state; state.Terminal() {
				r.Result, r.Clean = resultOf(t, *r, state, testKey(0)), true
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return file, accepted, ended
}

// byHand changes the file as a hand would, past the store.
func byHand(t *testing.T, file string, f func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// swap replaces words in the record of a job.
func swap(job id.ID, old, new string) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketJobs)
		data := b.Get([]byte(job))
		if !bytes.Contains(data, []byte(old)) {
			return errors.New(old + " is not in the record")
		}
		return b.Put([]byte(job), bytes.Replace(data, []byte(old), []byte(new), 1))
	}
}

// Whatever is changed by hand is told at the next opening, with the file, the
// record and what to do, and the file is left as it is. With the change undone
// it opens again with everything in it.
func TestStoreRefusesEditedFiles(t *testing.T) {
	file, accepted, ended := stateOf(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Valid in itself, and signed by a key that is not the runner's.
	forged := acceptedRecord(t, nil)
	if forged.Status.Receipt, err = sandbox.SignReceipt(forged.Status.Receipt, testKey(9)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		record id.ID // that is named
		want   string
		edit   func(*bbolt.Tx) error
	}{
		"program":              {accepted, "was changed", swap(accepted, "/bin/true", "/bin/evil")},
		"limits":               {accepted, "was changed", swap(accepted, `"memory_bytes":268435456`, `"memory_bytes":268435457`)},
		"capabilities":         {accepted, "was changed", swap(accepted, `"qualification":"test"`, `"qualification":"real"`)},
		"broker":               {accepted, "was changed", swap(accepted, `"broker":"test"`, `"broker":"best"`)},
		"output":               {ended, "was changed", swap(ended, `"stdout":"c2FpZA=="`, `"stdout":"bGllZA=="`)},
		"reason":               {ended, "was changed", swap(ended, `"reason":"test"`, `"reason":"cpu"`)},
		"outcome":              {ended, "was changed", swap(ended, `"exit_code":0`, `"exit_code":1`)},
		"ended, made to run":   {ended, "was changed", swap(ended, `"state":"failed"`, `"state":"running"`)},
		"ended otherwise":      {ended, "was changed", swap(ended, `"state":"failed"`, `"state":"exited"`)},
		"result taken away":    {ended, "was changed", swap(ended, `"result":`, `"resolt":`)},
		"not run, made to end": {accepted, "was changed", swap(accepted, `"state":"accepted"`, `"state":"exited"`)},
		"no state":             {accepted, "was changed", swap(accepted, `"state":"accepted"`, `"state":"unheard"`)},
		"no JSON":              {accepted, "is damaged", swap(accepted, "{", "x")},
		"under another name": {"sjob_other", "was changed", func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucketJobs)
			return b.Put([]byte("sjob_other"), b.Get([]byte(ended)))
		}},
		"another's result": {accepted, "was changed", func(tx *bbolt.Tx) error {
			var a, e record
			s := &store{keys: ringOf(t, testKey(0))}
			if err := errors.Join(s.get(tx, accepted, &a), s.get(tx, ended, &e)); err != nil {
				return err
			}
			a.Result, a.Status.State = e.Result, e.Status.State
			return put(tx.Bucket(bucketJobs), accepted, a)
		}},
		"forged": {forged.Status.Receipt.Job.ID, "was changed", func(tx *bbolt.Tx) error {
			j := forged.Status.Receipt.Job
			return errors.Join(put(tx.Bucket(bucketJobs), j.ID, forged), tx.Bucket(bucketKeys).Put([]byte(j.Key), []byte(j.ID)))
		}},
		"record gone": {accepted, "it is gone", func(tx *bbolt.Tx) error { return tx.Bucket(bucketJobs).Delete([]byte(accepted)) }},
		"key gone":    {accepted, "its key", func(tx *bbolt.Tx) error { return tx.Bucket(bucketKeys).Delete([]byte(accepted)) }},
		"key led away": {accepted, "its key", func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketKeys).Put([]byte(accepted), []byte(ended))
		}},
		"keys gone": {"", "without its jobs or their keys", func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketKeys) }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			byHand(t, file, c.edit)
			edited, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := openStore(file, ringOf(t, testKey(0)))
			if err == nil {
				_ = s.close()
				t.Fatal("opened")
			}
			for _, want := range []string{file, string(c.record), c.want, "put the file back from a copy", "move the file away"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: lacks %q", err, want)
				}
			}
			if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, edited) {
				t.Errorf("the file was written to (%v)", err)
			}
		})
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(file, ringOf(t, testKey(0)))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := errors.Join(s.each(func(record) error { n++; return nil }), s.close()); err != nil || n != 2 {
		t.Errorf("undone, %d records: %v", n, err)
	}
}

// A record that is changed under an open store is not believed either.
func TestStoreRefusesRecordsEditedMeanwhile(t *testing.T) {
	s, _ := openTestStore(t)
	r := acceptedRecord(t, nil)
	job := r.Status.Receipt.Job.ID
	if _, _, err := s.accept(r); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Update(swap(job, `"broker":"test"`, `"broker":"best"`)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"find":   func() error { _, err := s.find(job); return err }(),
		"each":   s.each(func(record) error { return nil }),
		"change": func() error { _, err := s.change(job, time.Now(), func(*record) error { return nil }); return err }(),
		"accept": func() error { _, _, err := s.accept(r); return err }(),
	} {
		if !errors.Is(err, sandbox.ErrMutated) || !strings.Contains(err.Error(), string(job)) || !strings.Contains(err.Error(), s.file) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A rotated key is told from an edited file, and what the former one signed
// counts once the operator, and not the file, says that it was the runner's.
func TestStoreAfterARotation(t *testing.T) {
	file, accepted, ended := stateOf(t)
	old, young := testKey(0), testKey(1)
	former := old.Public().(ed25519.PublicKey)
	_, err := openStore(file, ringOf(t, young))
	if err == nil {
		t.Fatal("records of another key are believed")
	}
	for _, want := range []string{file, "is signed by key " + keyName(former), "Options.Former", "put the key back", "move the file away"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: lacks %q", err, want)
		}
	}
	// A hand that notes its own key in the file gains nothing.
	byHand(t, file, func(tx *bbolt.Tx) error { return tx.Bucket(bucketSigners).Put(young.Public().(ed25519.PublicKey), nil) })
	if _, err := openStore(file, ringOf(t, young)); err == nil {
		t.Error("a key that only the file names is trusted")
	}
	s, err := openStore(file, ringOf(t, young, former))
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range []id.ID{accepted, ended} {
		if _, err := s.find(job); err != nil {
			t.Error(err)
		}
	}
	// Accepted under the old key, ended under the young one.
	if _, err := s.change(accepted, time.Now(), func(r *record) error {
		r.Status.State, r.Result = sandbox.StateFailed, resultOf(t, *r, sandbox.StateFailed, young)
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	// Back to the old one: both are known, and the young one is the former.
	if _, err := openStore(file, ringOf(t, old)); err == nil || !strings.Contains(err.Error(), "is signed by key "+keyName(young.Public().(ed25519.PublicKey))) {
		t.Errorf("rotated back: %v", err)
	}
	if s, err = openStore(file, ringOf(t, old, young.Public().(ed25519.PublicKey))); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

func TestKeyringRefuses(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newKeyring(other, nil); err == nil || !strings.Contains(err.Error(), "not Ed25519") {
		t.Errorf("another kind of key: %v", err)
	}
	if _, err := newKeyring(testKey(0), []ed25519.PublicKey{{1, 2}}); err == nil || !strings.Contains(err.Error(), "former key 0 has 2 bytes") {
		t.Errorf("a short key: %v", err)
	}
}

func BenchmarkStoreFind(b *testing.B) {
	s, err := openStore(stateFile(b.TempDir()), keyring{own: testKey(0).Public().(ed25519.PublicKey)})
	if err != nil {
		b.Fatal(err)
	}
	defer s.close()
	r := acceptedRecord(b, nil)
	if _, _, err := s.accept(r); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.find(r.Status.Receipt.Job.ID); err != nil {
			b.Fatal(err)
		}
	}
}
