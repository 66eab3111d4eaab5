package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// Tally is what many runs come to. Its size does not grow with them.
type Tally struct {
	Counts map[Count]int   // runs that ended, by reason and outcome
	Last   hostile.Outcome // of the last that says how the whole set stands; empty: none did
	Ended  time.Time       // the end of the last that said something about walls
	Good   time.Time       // the end of the last that qualified the runner

	began time.Time // the latest beginning of those that Last is of
}

// Count is what runs are counted by.
type Count struct {
	Kind    string // one of Kinds
	Outcome hostile.Outcome
}

// TallyOf counts runs.
func TallyOf(entries ...Entry) Tally {
	var t Tally
	for _, e := range entries {
		t.add(e)
	}
	return t
}

func (t *Tally) add(e Entry) {
	if e.Outcome == Running {
		return
	}
	if t.Counts == nil {
		t.Counts = map[Count]int{}
	}
	t.Counts[Count{e.Kind(), e.Outcome}]++
	if e.Outcome == hostile.Qualified && !e.Complete {
		return // a selection that held says nothing of a wall that fell before
	}
	if e.Good() && e.Finished.After(t.Good) {
		t.Good = e.Finished
	}
	if e.Started.Before(t.began) {
		return // it is told late: it was killed, or ran beside another
	}
	t.Last, t.began = e.Outcome, e.Started
	if e.Outcome != Interrupted { // that says nothing about any wall
		t.Ended = e.Finished
	}
}

// keptGood is how many runs that qualified the runner a follower knows one by
// one: reports of earlier ones are long gone.
const keptGood = 16

// Follower reads a ledger that grows: at each Update only the lines that are new.
// What it holds does not grow with the ledger, but for runs that were never
// finished. It is not safe for concurrent use.
type Follower struct {
	h       *History
	file    os.FileInfo // nil: nothing was read yet
	offset  int64
	line    int
	tally   Tally
	begun   map[string]Entry // not finished, by run
	good    []Entry          // the last that qualified the runner, oldest first
	last    *Entry           // the last that finished
	since   []Entry          // begun or finished since Mark
	damaged []string
}

// Follow returns a follower that has read nothing yet.
func (h *History) Follow() *Follower { return &Follower{h: h} }

// Update reads what was added. A ledger that is another file than at the last
// call, or shorter, is read from its beginning. damage names each new line that is
// torn or altered; a last line without its end is read once it is whole.
func (f *Follower) Update() (damage []string, err error) {
	file, err := os.Open(f.h.path)
	if errors.Is(err, fs.ErrNotExist) {
		*f = Follower{h: f.h, since: f.since}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	if f.file == nil || !os.SameFile(info, f.file) || info.Size() < f.offset {
		*f = Follower{h: f.h, since: f.since, begun: map[string]Entry{}}
	}
	f.file, f.damaged = info, nil
	if _, err := file.Seek(f.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	b := bufio.NewReaderSize(file, maxLine)
	more := 0
	for {
		line, long, ended, size, err := nextLine(b)
		if err != nil {
			return nil, fmt.Errorf("history: read %s: %w", f.h.path, err)
		}
		if ended {
			break // torn, or just being written: read again when it has its end
		}
		f.offset += size
		f.line++
		fail := errTooLong
		if !long {
			var r record
			if r, fail = decode(line); fail == nil {
				f.take(r)
				continue
			}
		}
		if len(f.damaged) == maxDamage {
			more++
			continue
		}
		f.damaged = append(f.damaged, fmt.Sprintf("%s: line %d: %s", f.h.path, f.line, fail))
	}
	if more > 0 {
		f.damaged = append(f.damaged, fmt.Sprintf("%s: ... and %d more damaged lines", f.h.path, more))
	}
	return f.damaged, nil
}

func (f *Follower) take(r record) {
	e := r.Entry
	if r.Event == eventBegun {
		f.begun[e.Run] = e
		f.since = append(f.since, e)
		return
	}
	if e.By == (Process{}) {
		e.By = f.begun[e.Run].By
	}
	delete(f.begun, e.Run)
	f.tally.add(e)
	f.last = &e
	if i := slices.IndexFunc(f.since, func(s Entry) bool { return s.Run == e.Run }); i >= 0 {
		f.since[i] = e
	} else {
		f.since = append(f.since, e)
	}
	if e.Good() {
		if f.good = append(f.good, e); len(f.good) > keptGood {
			f.good = slices.Delete(f.good, 0, 1)
		}
	}
}

// Mark forgets what Since tells of.
func (f *Follower) Mark() { f.since = nil }

// Since are the runs of which a line was read since the last Mark, in their last
// form; one without an outcome has not finished.
func (f *Follower) Since() []Entry { return slices.Clone(f.since) }

// Last is the last run that ended, one that was killed among them; ok is false when
// none did.
func (f *Follower) Last() (last Entry, ok bool) {
	if f.last != nil {
		last, ok = *f.last, true
	}
	for _, e := range f.h.settled(slices.Collect(maps.Values(f.begun))) {
		if e.Outcome != Running && (!ok || e.Started.After(last.Started)) {
			last, ok = e, true
		}
	}
	return last, ok
}

// Tally counts all runs that were read, those that were killed among them.
func (f *Follower) Tally() Tally {
	t := f.tally
	t.Counts = maps.Clone(t.Counts)
	for _, e := range f.h.settled(slices.Collect(maps.Values(f.begun))) {
		t.add(e)
	}
	return t
}

// Drift compares a run with the last good one before it; nil when no run before
// it qualified the runner.
func (f *Follower) Drift(r *reports.Report) (*reports.Difference, error) {
	return f.h.Drift(f.good, r)
}
