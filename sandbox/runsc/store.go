package runsc

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

// record is what the runner knows of one job, as it stands on the disk. The
// traces (Dir, Cgroup) are written before anything is created, so that the
// next start finds what a crash left.
type record struct {
	Status sandbox.JobStatus `json:"status"`
	Result *sandbox.Result   `json:"result,omitempty"`
	Dir    string            `json:"dir"`
	Cgroup string            `json:"cgroup"`
	Boot   string            `json:"boot"` // boot id: traces of another boot are gone but for folders
	Detail string            `json:"detail,omitempty"`
	Log    string            `json:"log,omitempty"` // where the runtime's logs of a failed start are kept
	Clean  bool              `json:"clean"`         // nothing of the job is left
}

var (
	bucketJobs    = []byte("jobs")    // id -> record
	bucketKeys    = []byte("keys")    // key -> id
	bucketSigners = []byte("signers") // public key that signed records -> nothing
)

// store is the durable job state: one bbolt file, one writer.
type store struct {
	db   *bbolt.DB
	file string
	keys keyring
}

// openStore opens or makes the file. A file that another runner holds, that is
// damaged, or that holds a record without a signature of keys, is an error
// which says so; nothing is overwritten.
func openStore(file string, keys keyring) (*store, error) {
	var db *bbolt.DB
	err := guard(func() (err error) {
		db, err = bbolt.Open(file, 0o600, &bbolt.Options{Timeout: lockWithin, FreelistType: bbolt.FreelistMapType})
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open job state %s: another runner holds it: wait for it to end, or give this one another state_dir", file)
	case err != nil:
		return nil, damaged(file, err)
	}
	if err := guard(func() error { return db.View(readThrough) }); err != nil {
		return nil, errors.Join(damaged(file, err), db.Close())
	}
	s := &store{db: db, file: file, keys: keys}
	if err := db.View(s.verifyAll); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, b := range [][]byte{bucketJobs, bucketKeys, bucketSigners} {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		return keys.note(tx)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open job state %s: %w", file, err), db.Close())
	}
	return s, nil
}

func damaged(file string, err error) error {
	return fmt.Errorf("open job state %s: %w: the file is damaged: put it back from a copy; %s", file, err, startAfresh)
}

// readThrough looks at every byte of every record, so that a file which was cut
// short is found before anything is written to it.
func readThrough(tx *bbolt.Tx) error {
	return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			crc32.ChecksumIEEE(k)
			crc32.ChecksumIEEE(v)
			return nil
		})
	})
}

// guard turns what the store's library does about a damaged file into an error:
// it panics on a page that is none, and its map of a file that was cut short
// faults beyond the end (mmap(2), SIGBUS).
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(shorten(fmt.Sprint(p)))
		}
	}()
	return f()
}

func (s *store) close() error { return s.db.Close() }

// accept stores a new job, or returns the record that its key already has.
// Another job under the key, or under the identity, is a conflict.
func (s *store) accept(r record) (record, bool, error) {
	job := r.Status.Receipt.Job
	var out record
	var fresh bool
	err := s.db.Update(func(tx *bbolt.Tx) error {
		jobs, keys := tx.Bucket(bucketJobs), tx.Bucket(bucketKeys)
		if known := keys.Get([]byte(job.Key)); known != nil {
			if err := s.get(tx, id.ID(known), &out); err != nil {
				return err
			}
			if out.Status.Receipt.Job.Digest != job.Digest {
				return fmt.Errorf("submit %s: %w: key %q has job %s", job.ID, sandbox.ErrConflict, job.Key, known)
			}
			return nil
		}
		if jobs.Get([]byte(job.ID)) != nil {
			return fmt.Errorf("submit %s: %w: the identity is taken under another key", job.ID, sandbox.ErrConflict)
		}
		if err := r.Status.CanFollow(sandbox.JobStatus{}); err != nil {
			return err
		}
		out, fresh = r, true
		if err := keys.Put([]byte(job.Key), []byte(job.ID)); err != nil {
			return err
		}
		return put(jobs, job.ID, r)
	})
	return out, fresh, err
}

// find returns the record of a job, or ErrNotFound.
func (s *store) find(job id.ID) (record, error) {
	var out record
	err := s.db.View(func(tx *bbolt.Tx) error { return s.get(tx, job, &out) })
	return out, err
}

// change applies f to the record by compare and swap: the stored status must
// still be the one that f was shown, which the transaction guarantees, and the
// new one must be allowed to follow it.
func (s *store) change(job id.ID, now time.Time, f func(*record) error) (record, error) {
	var out record
	err := s.db.Update(func(tx *bbolt.Tx) error {
		if err := s.get(tx, job, &out); err != nil {
			return err
		}
		before := out.Status
		if err := f(&out); err != nil {
			return err
		}
		if out.Status.State != before.State {
			out.Status.Revision = before.Revision + 1
			out.Status.UpdatedAt = now.UTC()
			if err := out.Status.CanFollow(before); err != nil {
				return fmt.Errorf("job %s: %w", job, err)
			}
		}
		if err := consistent(job, out); err != nil {
			return fmt.Errorf("job %s: %w", job, err)
		}
		return put(tx.Bucket(bucketJobs), job, out)
	})
	return out, err
}

// each calls f for every record.
func (s *store) each(f func(record) error) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketJobs).ForEach(func(k, v []byte) error {
			var r record
			if err := s.decode(tx, k, v, &r); err != nil {
				return err
			}
			return f(r)
		})
	})
}

func (s *store) get(tx *bbolt.Tx, job id.ID, out *record) error {
	data := tx.Bucket(bucketJobs).Get([]byte(job))
	if data == nil {
		return fmt.Errorf("job %.64q: %w", string(job), sandbox.ErrNotFound)
	}
	return s.decode(tx, []byte(job), data, out)
}

// decode checks what it reads: a record that was edited by hand is refused
// rather than believed.
func (s *store) decode(tx *bbolt.Tx, k, data []byte, out *record) error {
	if err := json.Unmarshal(data, out); err != nil {
		return s.told(fmt.Errorf("record %.64q is damaged: %w: put the file back from a copy; %s", k, err, startAfresh))
	}
	if err := s.verify(tx, k, *out); err != nil {
		return s.told(err)
	}
	return nil
}

func put(b *bbolt.Bucket, job id.ID, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("job %s: %w", job, err)
	}
	return b.Put([]byte(job), data)
}

// bootID tells one boot of the machine from another (random(4)).
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return string(data[:min(len(data), 36)])
}

func stateFile(dir string) string { return filepath.Join(dir, "jobs.db") }
