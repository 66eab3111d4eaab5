package observers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Secrets is the observer "secrets": whether the bytes of a secret of this run
// stand in anything that a job produced: what it left in scratch, which is read
// when its processes are gone, and what the harness was handed as its output
// ([Secrets.Saw]).
//
// Values: "found" (count of things that hold a secret), "bytes" (how much was
// read). A file in scratch is read as bytes, never opened through a link.
//
// What it does not prove: that no secret left in another form. A job that
// encodes what it read is not recognised; the canary's watch is what sees the
// reading.
type Secrets struct {
	temp    string
	secrets [][]byte
	shown   [][]byte // what holds one each, for the control
	longest int      // bytes of a secret

	mu  sync.Mutex
	saw map[string][]string // place to what was found in its output
}

// maxScratchRead bounds what is read of one job's scratch.
const maxScratchRead = 256 << 20

// maxSecret keeps a secret well within one of the reader's buffers.
const maxSecret = readSize / 4

// NewSecrets returns the observer for this run's secrets, 16 bytes to 64 KiB
// each. What is shown are contents that hold one each and were had on another
// way than the secrets, such as the canaries' files: the control has to find
// every one of them, so an observer that was told the wrong secrets is blind.
func NewSecrets(h Host, secrets []string, shown ...[]byte) (*Secrets, error) {
	s := &Secrets{temp: h.Temp, saw: map[string][]string{}, shown: shown}
	for _, v := range secrets {
		if len(v) < 16 {
			return nil, errors.New("watch secrets: one is too short to be told from chance")
		}
		if len(v) > maxSecret {
			return nil, fmt.Errorf("watch secrets: one is longer than %d bytes", maxSecret)
		}
		s.secrets = append(s.secrets, []byte(v))
		s.longest = max(s.longest, len(v))
	}
	if len(s.secrets) == 0 {
		return nil, errors.New("watch secrets: there is none")
	}
	return s, nil
}

// Name is "secrets".
func (*Secrets) Name() string { return "secrets" }

// Saw looks through bytes that the job at the place produced.
func (s *Secrets) Saw(place, what string, data []byte) {
	if s.holds(data) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.saw[place] = append(s.saw[place], "a secret of this run stands in "+what)
	}
}

func (s *Secrets) holds(data []byte) bool {
	for _, v := range s.secrets {
		if bytes.Contains(data, v) {
			return true
		}
	}
	return false
}

// Control puts a secret into a throwaway scratch, behind other bytes, and what
// was shown, each in a file of its own, and an innocent file beside them.
func (s *Secrets) Control(context.Context) (c Control) {
	c = Control{
		Observer: s.Name(), Effect: fmt.Sprintf("a secret of this run and the contents of %d canaries are put into a throwaway folder beside an innocent file", len(s.shown)),
		Want: fmt.Sprintf("exactly those %d files", 1+len(s.shown)),
	}
	dir, err := os.MkdirTemp(s.temp, "tenwalls-secrets-")
	if err != nil {
		c.Reason = err.Error()
		return c
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			c.Passed, c.Reason = false, err.Error()
		}
	}()
	// The secret lies across two of the reader's buffers.
	files := map[string][]byte{"held": append(bytes.Repeat([]byte{'.'}, readSize-8), s.secrets[0]...)}
	for i, data := range s.shown {
		files[fmt.Sprintf("shown-%d", i)] = data
	}
	errs := []error{os.WriteFile(filepath.Join(dir, "innocent"), []byte("nothing"), 0o600)}
	var want []string
	for name, data := range files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		want = append(want, "a secret of this run stands in scratch: "+name)
	}
	if err := errors.Join(errs...); err != nil {
		c.Reason = err.Error()
		return c
	}
	found, _, err := s.folder(dir)
	slices.Sort(want)
	slices.Sort(found)
	c.Seen = fmt.Sprintf("%d files: %v", len(found), found)
	switch {
	case err != nil:
		c.Reason = err.Error()
	case !slices.Equal(found, want):
		c.Reason = "the files were not found as placed"
	default:
		c.Passed = true
	}
	return c
}

// Watch arms the observer.
func (s *Secrets) Watch(_ context.Context, sub Subject) (Watch, error) {
	return &secretsWatch{secrets: s, subject: sub, obs: Observation{Observer: s.Name(), Place: sub.Place}}, nil
}

type secretsWatch struct {
	secrets *Secrets
	subject Subject
	obs     Observation
	found   []string
	bytes   int64
}

func (*secretsWatch) Sample() {}

// Ended reads scratch: nothing writes there any more, and it still stands.
func (w *secretsWatch) Ended() {
	w.obs.Samples++
	found, n, err := w.secrets.folder(w.subject.Scratch)
	if err != nil {
		w.obs.Lost = err.Error()
	}
	w.found, w.bytes = found, n
}

func (w *secretsWatch) Stored() Observation {
	w.secrets.mu.Lock()
	w.found = append(w.found, w.secrets.saw[w.subject.Place]...)
	w.secrets.mu.Unlock()
	n := int64(len(w.found))
	for _, f := range w.found {
		w.obs.Find(f)
	}
	w.obs.Values = map[string]Reading{
		"found": {Worst: n, After: n, Unit: "count"},
		"bytes": {Worst: w.bytes, After: w.bytes, Unit: "bytes"},
	}
	return w.obs
}

const readSize = 256 << 10

// folder reads every regular file below dir. Links, pipes and devices are the
// job's and are not followed or opened.
func (s *Secrets) folder(dir string) (found []string, total int64, err error) {
	if dir == "" {
		return nil, 0, nil
	}
	buf := make([]byte, readSize)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read scratch: %w", err)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		n, held, err := s.file(path, buf)
		if total += n; total > maxScratchRead {
			return fmt.Errorf("read scratch: more than %d bytes", int64(maxScratchRead))
		}
		if held {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, "a secret of this run stands in scratch: "+rel)
		}
		return err
	})
	return found, total, err
}

// file keeps the end of each buffer before the next, so that a secret across
// two is found.
func (s *Secrets) file(path string, buf []byte) (n int64, held bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, false, fmt.Errorf("read scratch: %w", err)
	}
	defer f.Close()
	kept := 0
	for {
		k, err := f.Read(buf[kept:])
		n += int64(k)
		if held = held || s.holds(buf[:kept+k]); err == io.EOF {
			return n, held, nil
		}
		if err != nil {
			return n, held, fmt.Errorf("read scratch: %w", err)
		}
		have := buf[:kept+k]
		kept = copy(buf, have[max(0, len(have)-s.longest):])
	}
}
