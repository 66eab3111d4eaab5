package runsc

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// keyring is whose signatures the stored records may bear. What is trusted
// comes from the options alone: whoever can edit the state file could put a key
// of their own in it.
type keyring struct {
	own    ed25519.PublicKey   // signs what is stored from now on
	former []ed25519.PublicKey // signed what was stored before a rotation
}

func newKeyring(key crypto.Signer, former []ed25519.PublicKey) (keyring, error) {
	own, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return keyring{}, fmt.Errorf("the key is %T, not Ed25519", key.Public())
	}
	for i, k := range former {
		if len(k) != ed25519.PublicKeySize {
			return keyring{}, fmt.Errorf("former key %d has %d bytes, not %d", i, len(k), ed25519.PublicKeySize)
		}
	}
	return keyring{own: own, former: former}, nil
}

// trusted are all keys whose signatures count.
func (k keyring) trusted() []ed25519.PublicKey {
	return append([]ed25519.PublicKey{k.own}, k.former...)
}

// keyName is a short name of a public key for messages.
func keyName(k ed25519.PublicKey) string { return evidence.Digest(k)[:len("sha256:")+16] }

// note writes the public half of the own key into the state. It is never
// trusted; it lets a later start tell a rotated key from an edited record.
func (k keyring) note(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketSigners)
	if b.Get(k.own) != nil {
		return nil
	}
	return b.Put(k.own, []byte{})
}

// startAfresh is the last remedy for a state file that is not whole.
const startAfresh = "to start afresh, move the file away (what it knew of accepted jobs is lost with it)"

// unsigned is a record that bears no signature of a trusted key, or that does
// not hold together.
type unsigned struct {
	record string
	err    error
	signer ed25519.PublicKey // the former key that signed it, when it is one that this state has seen
	own    ed25519.PublicKey
}

func (e unsigned) Unwrap() error { return e.err }

func (e unsigned) Error() string {
	if e.signer != nil {
		return fmt.Sprintf("record %.64q is signed by key %s, which this state has used, and the runner's key is now %s: give the former key's public half in Options.Former, or put the key back; %s",
			e.record, keyName(e.signer), keyName(e.own), startAfresh)
	}
	return fmt.Sprintf("record %.64q was changed by somebody else (%v): put the file back from a copy; %s", e.record, e.err, startAfresh)
}

// verify refuses a record that this runner, or a former key of it, did not
// write: the signatures of receipt and result, and what no signature covers as
// far as it follows from what they do. What is left (a state before the end, a
// revision, the words of the detail) can be edited unseen, as can the absence
// of a whole job; neither makes a job run again that is in the state.
func (s *store) verify(tx *bbolt.Tx, key []byte, r record) error {
	err := consistent(id.ID(key), r)
	if err == nil {
		err = signedBy(s.keys.trusted(), r)
	}
	if err == nil {
		return nil
	}
	out := unsigned{record: string(key), err: err, own: s.keys.own}
	signers := tx.Bucket(bucketSigners)
	if signers == nil || consistent(id.ID(key), r) != nil {
		return out
	}
	seen := signers.Cursor()
	for k, _ := seen.First(); k != nil && out.signer == nil; k, _ = seen.Next() {
		if len(k) == ed25519.PublicKeySize && signedBy(append(s.keys.trusted(), k), r) == nil {
			out.signer = bytes.Clone(k)
		}
	}
	return out
}

// signedBy tells whether receipt and result are each signed by one of the keys:
// a job may outlive the key under which it was accepted.
func signedBy(keys []ed25519.PublicKey, r record) error {
	one := func(verify func(ed25519.PublicKey) error) error {
		var first error
		for _, k := range keys {
			err := verify(k)
			if err == nil {
				return nil
			}
			if first == nil || !errors.Is(err, sandbox.ErrMutated) { // signed by k, and wrong in itself
				first = err
			}
		}
		return first
	}
	if err := one(r.Status.Receipt.Verify); err != nil {
		return err
	}
	if r.Result == nil {
		return nil
	}
	return one(r.Result.Verify)
}

// consistent compares what is signed with what stands beside it.
func consistent(key id.ID, r record) error {
	job := r.Status.Receipt.Job
	switch {
	case job.ID != key:
		return fmt.Errorf("it holds job %.64q", string(job.ID))
	case r.Status.State.Terminal() != (r.Result != nil):
		return fmt.Errorf("the state is %.32q, and a result is there: %t", r.Status.State, r.Result != nil)
	case r.Result == nil && !slices.Contains([]sandbox.State{sandbox.StateAccepted, sandbox.StateRunning}, r.Status.State):
		return fmt.Errorf("the state %.32q is none", r.Status.State)
	case r.Result != nil && (r.Result.State != r.Status.State || r.Result.JobDigest != job.Digest):
		return errors.New("the result is another's")
	}
	return nil
}

// verifyAll looks at every record and at the index of keys, before anything is
// written or run.
func (s *store) verifyAll(tx *bbolt.Tx) error {
	jobs, keys := tx.Bucket(bucketJobs), tx.Bucket(bucketKeys)
	switch {
	case jobs == nil && keys == nil:
		return nil // a new file
	case jobs == nil || keys == nil:
		return s.told(fmt.Errorf("it is without its jobs or their keys: put the file back from a copy; %s", startAfresh))
	}
	err := jobs.ForEach(func(k, v []byte) error {
		var r record
		if err := s.decode(tx, k, v, &r); err != nil {
			return err
		}
		if known := keys.Get([]byte(r.Status.Receipt.Job.Key)); !bytes.Equal(known, k) {
			return s.told(unsigned{record: string(k), own: s.keys.own, err: fmt.Errorf("its key %q leads to %.64q", r.Status.Receipt.Job.Key, known)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return keys.ForEach(func(k, v []byte) error {
		if jobs.Get(v) == nil {
			return s.told(unsigned{record: string(v), own: s.keys.own, err: fmt.Errorf("it is gone, and key %.64q leads to it", k)})
		}
		return nil
	})
}

// told adds the file.
func (s *store) told(err error) error { return fmt.Errorf("job state %s: %w", s.file, err) }
