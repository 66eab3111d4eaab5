package runsc

import (
	"bytes"
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pipes opens both streams.
func pipes(t *testing.T, o *output) (stdout, stderr *os.File) {
	t.Helper()
	var err error
	if stdout, err = o.pipe(&o.stdout); err != nil {
		t.Fatal(err)
	}
	if stderr, err = o.pipe(&o.stderr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = stdout.Close(), stderr.Close() })
	return stdout, stderr
}

// soon is long enough for what has to happen at once.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestOutputBound(t *testing.T) {
	for _, c := range []struct {
		name        string
		bound       int64
		out, errOut int
		kept        int
		overflows   int32
	}{
		{"nothing", 10, 0, 0, 0, 0},
		{"below", 10, 4, 5, 9, 0},
		{"exactly, both together", 10, 4, 6, 10, 0},
		{"one too many", 10, 4, 7, 10, 1},
		{"one stream", 10, 11, 0, 10, 1},
		{"flood on both", 64 << 10, 1 << 20, 1 << 20, 64 << 10, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var overflows atomic.Int32
			o := newOutput(c.bound, func() { overflows.Add(1) })
			stdout, stderr := pipes(t, o)
			var wg sync.WaitGroup
			write := func(f *os.File, n int, with string) {
				wg.Go(func() {
					// The guest meets neither a broken nor a full pipe.
					if _, err := io.Copy(f, strings.NewReader(strings.Repeat(with, n))); err != nil {
						t.Error(err)
					}
					_ = f.Close()
				})
			}
			write(stdout, c.out, "o")
			write(stderr, c.errOut, "e")
			wg.Wait()
			if err := o.wait(soon(t)); err != nil {
				t.Fatal(err)
			}
			if n := len(o.stdout) + len(o.stderr); n != c.kept || o.kept != int64(c.kept) {
				t.Errorf("%d bytes kept, %d counted, want %d", n, o.kept, c.kept)
			}
			// Each stream that is beyond the bound says so; the ending takes the first.
			if n := overflows.Load(); (n > 0) != (c.overflows > 0) || n > 2 {
				t.Errorf("overflow told %d times", n)
			}
			if bytes.Contains(o.stdout, []byte("e")) || bytes.Contains(o.stderr, []byte("o")) {
				t.Error("the streams are mixed")
			}
		})
	}
}

func TestOutputOverflowIsToldOnceAStream(t *testing.T) {
	var told atomic.Int32
	o := newOutput(1, func() { told.Add(1) })
	stdout, stderr := pipes(t, o)
	for range 100 {
		if _, err := stdout.WriteString(strings.Repeat("x", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = stdout.Close(), stderr.Close()
	if err := o.wait(soon(t)); err != nil || told.Load() != 1 {
		t.Errorf("told %d times (%v)", told.Load(), err)
	}
}

// A gigabyte goes by without the harness growing.
func TestOutputFloodStaysWithinMemory(t *testing.T) {
	for _, bound := range []int64{1 << 20, 0} {
		o := newOutput(bound, func() {})
		stdout, stderr := pipes(t, o)
		_ = stderr.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		chunk := bytes.Repeat([]byte("f"), 1<<20)
		for range 512 {
			if _, err := stdout.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
		_ = stdout.Close()
		if err := o.wait(soon(t)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		want := bound
		if want == 0 {
			want = unboundedKept
		}
		if int64(len(o.stdout)) != want || o.over != (bound > 0) {
			t.Errorf("bound %d: %d bytes kept, over %t", bound, len(o.stdout), o.over)
		}
		// Everything allocated meanwhile, garbage of growing included.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 8*uint64(want)+(4<<20) {
			t.Errorf("bound %d: %d bytes allocated for a flood", bound, grown)
		}
	}
}

// Whoever holds the job's output open from outside is told of and not waited
// for, and what he writes afterwards goes nowhere.
func TestOutputWaitIsBounded(t *testing.T) {
	o := newOutput(1<<20, func() {})
	stdout, stderr := pipes(t, o)
	if _, err := stdout.WriteString("before"); err != nil {
		t.Fatal(err)
	}
	_ = stderr.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := o.wait(ctx); err == nil || !strings.Contains(err.Error(), "outside the job") {
		t.Errorf("wait: %v", err)
	}
	kept := string(o.stdout) // read as finish does, without a lock
	for range 100 {
		_, _ = stdout.WriteString("after")
	}
	if kept != "before" || string(o.stdout) != "before" {
		t.Errorf("kept %q, then %q", kept, o.stdout)
	}
}
