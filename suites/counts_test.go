package suites

import (
	"bytes"
	"io"
	"testing"
	"time"

	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

func TestOutputObserver(t *testing.T) {
	o := outputObserver{newCounts()}
	watch, err := o.Watch(t.Context(), observers.Subject{Place: "here"})
	if err != nil {
		t.Fatal(err)
	}
	if got := watch.Stored(); got.Lost == "" || got.Samples != 0 || len(got.Values) != 0 {
		t.Errorf("nothing was handed out, and %+v was seen", got)
	}
	if c := o.Control(t.Context()); !c.Passed || c.Observer != "output" {
		t.Errorf("%+v", c)
	}
	o.counts.took("elsewhere", sandbox.Result{Stdout: make([]byte, 99)})
	o.counts.took("here", sandbox.Result{Stdout: make([]byte, 5), Stderr: make([]byte, 4), Artifacts: make([]evidence.Ref, 2)})
	got := watch.Stored()
	if got.Values["kept"].After != 9 || got.Values["artifacts"].After != 2 || got.Lost != "" || got.Samples == 0 || got.Place != "here" {
		t.Errorf("%+v", got)
	}
}

func TestClockObserver(t *testing.T) {
	w := &clockWatch{place: "here", began: time.Now().Add(-time.Minute)}
	w.Ended()
	wall := w.Stored().Values["wall"]
	if d := time.Duration(wall.After); d < time.Minute || d > 2*time.Minute || wall.Worst != wall.After || wall.Unit != "ns" {
		t.Errorf("a minute is measured as %s", d)
	}
	// Whoever asks late gets the time at which it ended.
	if again := w.Stored().Values["wall"]; again != wall {
		t.Errorf("%+v, then %+v", wall, again)
	}
}

func TestShelf(t *testing.T) {
	s := newShelf()
	ref := s.add([]byte("a submission"), "neighbour")
	if ref.Size != 12 || ref.Digest != evidence.Digest([]byte("a submission")) || ref.Validate() != nil {
		t.Errorf("%+v", ref)
	}
	for range 2 { // reading takes nothing away
		r, err := s.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(r); err != nil || string(data) != "a submission" {
			t.Errorf("%q, %v", data, err)
		}
	}
	if s.add([]byte("a submission"), "another").ID == ref.ID {
		t.Error("two artifacts share an id")
	}
	out := evidence.Ref{ID: id.New("art")}
	if err := s.Put(t.Context(), out, []byte("an output")); err != nil {
		t.Fatal(err)
	}
	if got := s.take(out); !bytes.Equal(got, []byte("an output")) {
		t.Errorf("%q", got)
	}
	if got := s.take(out); got != nil {
		t.Errorf("taken twice: %q", got)
	}
	if _, err := s.Open(t.Context(), out); err == nil {
		t.Error("what was taken is on the shelf")
	}
}
