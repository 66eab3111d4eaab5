package watch

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/internal/bounded"
	"tenwalls.dev/harness/internal/durable"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
)

// Publisher is the one file that consumers read: an attestation, replaced
// atomically, or nothing.
type Publisher struct {
	Path string
	Key  crypto.Signer // Ed25519

	last []byte // what stands there, nil when nothing does
}

// Publish signs the run's statement anew, as valid from now until the given time
// or until the run's own expiry, whichever is sooner, and puts it into place. The
// capabilities in it expire with it. It returns until when.
func (p *Publisher) Publish(run attest.Statement, now, until time.Time) (time.Time, error) {
	s := run
	s.Issued = now
	if until.Before(s.Expires) {
		s.Expires = until
	}
	s.Expires = s.Expires.UTC().Truncate(time.Second)
	var c sandbox.Capabilities
	if err := json.Unmarshal(run.Capabilities, &c); err != nil {
		return time.Time{}, fmt.Errorf("publish: the run's capabilities: %w", err)
	}
	c.QualifiedUntil = s.Expires
	var err error
	if s.Capabilities, err = json.Marshal(c); err != nil {
		return time.Time{}, fmt.Errorf("publish: %w", err)
	}
	a, err := attest.Sign(s, p.Key)
	if err != nil {
		return time.Time{}, fmt.Errorf("publish: %w", err)
	}
	data, err := a.Encode()
	if err != nil {
		return time.Time{}, fmt.Errorf("publish: %w", err)
	}
	if err := replace(p.Path, data, 0o644); err != nil {
		return time.Time{}, fmt.Errorf("publish: %w", err)
	}
	p.last = data
	return s.Expires, nil
}

// maxPublished bounds what stands in a published file, in bytes.
const maxPublished = 1 << 20

// replaceable says whether what stands at the path is an attestation, or nothing:
// a daemon removes it at its start, and its configuration may name another file by
// mistake.
func replaceable(path string) error {
	data, err := bounded.Read(path, maxPublished)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		err = fmt.Errorf("%s: a link to nothing", path)
	}
	if err == nil {
		_, err = attest.DecodeAttestation(data)
	}
	if err != nil {
		return fmt.Errorf("publish: %s is there and is no attestation, so it is not removed: move it away, or publish elsewhere (%w)", path, err)
	}
	return nil
}

// Withdraw removes the file. It is gone for readers when the call returns, and
// from the disk too unless there is an error. Removing what is not there is none.
func (p *Publisher) Withdraw() error {
	p.last = nil
	err := os.Remove(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("withdraw: %w", err)
	}
	if err := durable.SyncFolder(filepath.Dir(p.Path)); err != nil {
		return fmt.Errorf("withdraw: %w", err)
	}
	return nil
}

// Published returns the bytes that stand there, nil when nothing does.
func (p *Publisher) Published() []byte { return p.last }

// replace writes a file that readers see whole or not at all, and that survives
// a power cut: another name, fsync(2), rename(2), fsync of the folder. One writer
// at a time.
func replace(path string, data []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp := filepath.Join(dir, "."+filepath.Base(path)+".new")
	// What a killed daemon left under the name is not written into: it could be a
	// link.
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return durable.SyncFolder(dir)
}
