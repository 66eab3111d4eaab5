package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
)

// However the ledger is read, in one go or line by line as it grows, it comes to
// the same.
func TestAFollowerComesToTheSame(t *testing.T) {
	h := In(t.TempDir())
	f := h.Follow()
	update := func() {
		t.Helper()
		if damage, err := f.Update(); err != nil || len(damage) > 0 {
			t.Fatalf("%q, %v", damage, err)
		}
	}
	update() // there is none yet
	random := rand.New(rand.NewPCG(1, 2))
	outcomes := []hostile.Outcome{hostile.Qualified, hostile.Refused, hostile.Unproven, Interrupted}
	for n := range 200 {
		e := finished(n, outcomes[random.IntN(len(outcomes))])
		e.Reason = Kinds[random.IntN(len(Kinds))] + ": x"
		e.Complete = random.IntN(3) > 0
		if random.IntN(4) > 0 {
			must(t, h.Begin(e))
		}
		if random.IntN(8) > 0 {
			must(t, h.Finish(e))
		}
		if random.IntN(3) > 0 {
			continue
		}
		update()
		entries, _, err := h.Entries(time.Time{})
		must(t, err)
		if got, want := f.Tally(), TallyOf(entries...); !reflect.DeepEqual(got, want) {
			t.Fatalf("after %d runs:\n%+v\n%+v", n, got, want)
		}
		fresh := h.Follow()
		if _, err := fresh.Update(); err != nil || !reflect.DeepEqual(fresh.Tally(), f.Tally()) {
			t.Fatalf("after %d runs, read anew: %v\n%+v\n%+v", n, err, fresh.Tally(), f.Tally())
		}
	}
	if len(f.good) != keptGood || len(f.begun) > 200/4 {
		t.Errorf("%d good runs are kept, %d unfinished", len(f.good), len(f.begun))
	}
}

// Only what is new is read, and since a mark told.
func TestAFollowerTellsWhatIsNew(t *testing.T) {
	h := In(t.TempDir())
	must(t, h.Finish(finished(1, hostile.Qualified)))
	f := h.Follow()
	update := func() []string {
		t.Helper()
		damage, err := f.Update()
		must(t, err)
		return damage
	}
	update()
	f.Mark()
	must(t, h.Begin(finished(2, hostile.Refused)))
	update()
	if s := f.Since(); len(s) != 1 || s[0].Outcome != "" {
		t.Errorf("since: %+v", s)
	}
	must(t, h.Finish(finished(2, hostile.Refused)))
	update()
	if s := f.Since(); len(s) != 1 || s[0].Run != finished(2, hostile.Refused).Run || s[0].By.PID != os.Getpid() {
		t.Errorf("since: %+v", s)
	}
	if last, ok := f.Last(); !ok || last.Outcome != hostile.Refused {
		t.Errorf("last: %+v", last)
	}

	// A line that is just being written is read when it has its end; one that is
	// altered is told once.
	data, err := os.ReadFile(h.Path())
	must(t, err)
	line := strings.SplitAfter(string(data), "\n")[0]
	put := func(text string) {
		t.Helper()
		file, err := os.OpenFile(h.Path(), os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, err = file.WriteString(text)
		must(t, err)
		must(t, file.Close())
	}
	count := func() int { return f.Tally().Counts[Count{finished(1, hostile.Qualified).Kind(), hostile.Qualified}] }
	put(line[:40])
	if d := update(); len(d) != 0 || count() != 1 {
		t.Errorf("half a line: %q, %d", d, count())
	}
	put(line[40:])
	if d := update(); len(d) != 0 || count() != 2 {
		t.Errorf("its other half: %q, %d", d, count())
	}
	put("garbage\n")
	if d := update(); len(d) != 1 || !strings.Contains(d[0], "line 5: too short") {
		t.Errorf("garbage: %q", d)
	}
	if d := update(); len(d) != 0 {
		t.Errorf("told again: %q", d)
	}
	put(strings.Repeat("x", 3*maxLine) + "\n" + line)
	if d := update(); len(d) != 1 || !strings.Contains(d[0], "line 6: more than") || count() != 3 {
		t.Errorf("a long line: %q, %d", d, count())
	}

	// Another file, a shorter one, and none.
	must(t, os.WriteFile(h.Path(), []byte(line), 0o644))
	if update(); count() != 1 {
		t.Errorf("cut: %d", count())
	}
	next := filepath.Join(filepath.Dir(h.Path()), "next")
	must(t, os.WriteFile(next, []byte(line+line+line), 0o644))
	must(t, os.Rename(next, h.Path()))
	if update(); count() != 3 {
		t.Errorf("replaced: %d", count())
	}
	must(t, os.Remove(h.Path()))
	if update(); count() != 0 {
		t.Errorf("removed: %d", count())
	}
	if _, ok := f.Last(); ok {
		t.Error("a last run of none")
	}
}

// BenchmarkFollow reads one more run of a ledger of ten thousand.
func BenchmarkFollow(b *testing.B) {
	h := In(b.TempDir())
	var text strings.Builder
	for n := range 10000 {
		line, err := encode(record{Event: eventFinished, Entry: finished(n, hostile.Qualified)})
		if err != nil {
			b.Fatal(err)
		}
		text.Write(line)
	}
	if err := os.MkdirAll(filepath.Dir(h.Path()), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(h.Path(), []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	for _, anew := range []bool{true, false} {
		b.Run(fmt.Sprintf("anew=%v", anew), func(b *testing.B) {
			f := h.Follow()
			for b.Loop() {
				if anew {
					f = h.Follow()
				}
				if _, err := f.Update(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
