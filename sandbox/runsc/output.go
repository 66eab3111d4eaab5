package runsc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// output keeps what a job prints, up to a bound over both streams together.
// What is beyond the bound is counted as refused and never stored, so neither
// memory nor disk of the host grows with a flood.
type output struct {
	bound    int64 // bytes; 0: none
	overflow func()

	mu     sync.Mutex
	kept   int64
	over   bool
	stdout []byte
	stderr []byte
	ends   []*os.File // the read ends
	wg     sync.WaitGroup
	errs   []error
}

// unboundedKept is what is kept when the bound itself is lowered for a trial:
// the harness's own memory stays bounded.
const unboundedKept = 8 << 20

func newOutput(bound int64, overflow func()) *output {
	return &output{bound: bound, overflow: overflow}
}

// pipe returns the write end to hand to the runtime and starts reading the
// other. A pipe, unlike a file, gives the guest nothing of the host to hold.
func (o *output) pipe(into *[]byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make output pipe: %w", err)
	}
	o.ends = append(o.ends, r)
	o.wg.Add(1)
	go o.read(r, into)
	return w, nil
}

func (o *output) read(r *os.File, into *[]byte) {
	defer o.wg.Done()
	defer r.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 && o.keep(buf[:n], into) {
			o.overflow()
			// Until the job is dead the pipe stays open and is emptied, so
			// that the guest meets the cap and not a broken or full pipe.
			_, _ = io.Copy(io.Discard, r)
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				o.mu.Lock()
				o.errs = append(o.errs, err)
				o.mu.Unlock()
			}
			return
		}
	}
}

// keep stores what fits and reports whether the bound is passed.
func (o *output) keep(b []byte, into *[]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	bound := o.bound
	if bound == 0 {
		bound = unboundedKept
	}
	room := bound - o.kept
	if int64(len(b)) > room {
		b = b[:room]
		o.over = o.bound > 0
	}
	*into = append(*into, b...)
	o.kept += int64(len(b))
	return o.over
}

// wait returns when nothing is added to the output any more: both pipes are at
// their end, or ctx is done and they are closed. That somebody outside the job
// held one open is an error.
func (o *output) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		o.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return errors.Join(o.errs...)
	case <-ctx.Done():
		for _, r := range o.ends {
			_ = r.Close() // ends the reading; the other one may be closed already
		}
		<-done
		return errors.New("a process outside the job holds its output open")
	}
}
