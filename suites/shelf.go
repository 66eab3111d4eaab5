package suites

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// shelf is the run's artifact store: in memory, since what the jobs of a run
// offer is small and goes with it.
type shelf struct {
	mu    sync.Mutex
	items map[id.ID][]byte
}

func newShelf() *shelf { return &shelf{items: map[id.ID][]byte{}} }

// add stores bytes of the harness's own and returns their reference.
func (s *shelf) add(data []byte, source string) evidence.Ref {
	ref := evidence.Ref{
		ID: id.New("art"), Digest: evidence.Digest(data), Size: int64(len(data)), MediaType: "text/plain",
		Producer: "tenwalls", Source: source,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[ref.ID] = data
	return ref
}

// Open returns an input's bytes.
func (s *shelf) Open(_ context.Context, ref evidence.Ref) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.items[ref.ID]
	if !ok {
		return nil, fmt.Errorf("artifact %s is not on the shelf", ref.ID)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Put stores an output's bytes.
func (s *shelf) Put(_ context.Context, ref evidence.Ref, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[ref.ID] = data
	return nil
}

// take returns and forgets an output's bytes.
func (s *shelf) take(ref evidence.Ref) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := s.items[ref.ID]
	delete(s.items, ref.ID)
	return data
}
