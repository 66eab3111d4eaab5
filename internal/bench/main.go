// Command bench prints how long a run takes beside the same payloads under a
// bare runsc, in one process on one machine: ratios, medians of five.
//
// What it does not prove: anything about another machine. Absolute times are
// shown only so that a reader can tell a quiet machine from a busy one.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/sandbox/runsc"
	"tenwalls.dev/harness/suites"
)

const rounds = 5

func main() {
	act.Main()
	if err := bench(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context) (err error) {
	cfg := runsc.DefaultConfig()
	if cfg.Runtime.Path, err = filepath.Abs("bin/runsc"); err != nil {
		return err
	}
	if cfg.StateDir, err = os.MkdirTemp("", "tenwalls-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.StateDir)) }()
	var bare, ten, whole, ratios, share []float64
	for i := range rounds {
		b, err := suites.Bare(ctx, cfg)
		if err != nil {
			return err
		}
		t, _, err := timed(ctx, cfg, func(t *suites.Trial) bool { return t.Attempt.Step > 0 && t.Principal() })
		if err != nil {
			return err
		}
		w, longest, err := timed(ctx, cfg, nil)
		if err != nil {
			return err
		}
		bare, ten, whole = append(bare, b.Seconds()), append(ten, t.Seconds()), append(whole, w.Seconds())
		ratios, share = append(ratios, t.Seconds()/b.Seconds()), append(share, w.Seconds()/longest.Seconds())
		fmt.Printf("round %d: bare %.2f s, ten attempts %.2f s (ratio %.2f), whole set %.2f s (%.2f of its longest trial)\n",
			i+1, b.Seconds(), t.Seconds(), ratios[i], w.Seconds(), share[i])
	}
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return err
	}
	fmt.Printf("\n%-52s %8s\n", "medians of five", "")
	for _, row := range []struct {
		name  string
		value float64
		unit  string
	}{
		{"ten payloads one after another, bare runsc", median(bare), "s"},
		{"the ten attempts, watched", median(ten), "s"},
		{"  ratio, at most 1.0", median(ratios), ""},
		{"the whole set", median(whole), "s"},
		{"  of its longest trial, at most 1.2", median(share), ""},
		{"peak memory of this process over all rounds", float64(ru.Maxrss) / 1024, "MiB"},
	} {
		fmt.Printf("%-52s %8.2f %s\n", row.name, row.value, row.unit)
	}
	return nil
}

// timed runs the selected trials and returns how long that took, and how long
// the longest trial's job lived.
func timed(ctx context.Context, cfg runsc.Config, choose func(*suites.Trial) bool) (took, longest time.Duration, err error) {
	began := time.Now()
	rep, err := suites.Run(ctx, suites.Options{Config: cfg, Select: choose, Version: "bench"})
	if err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	for _, t := range rep.Trials {
		if t.Verdict != hostile.Held {
			return 0, 0, fmt.Errorf("%s is %s, so the run's time would say nothing: %s", t.ID, t.Verdict, t.Reason)
		}
		if t.Ended != nil {
			longest = max(longest, time.Duration(t.Ended.WallMS)*time.Millisecond)
		}
	}
	return took, longest, nil
}

func median(v []float64) float64 {
	s := slices.SortedFunc(slices.Values(v), cmp.Compare)
	return s[len(s)/2]
}
