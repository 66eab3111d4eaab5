// Package history is the ledger of runs: one file to which every run appends a
// line before it begins and another when it has finished, so that a run which
// was killed is told as interrupted and never forgotten.
//
// Each line carries a checksum, so that a line which a crash tore or a hand
// edited is seen; it hides no other line.
//
// What this package does not prove: that nobody rewrote the file. Whoever can
// write it can make a good checksum, and can take lines away at its end. It is
// kept behind one small type so that a log which shows tampering can take its
// place.
package history

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"tenwalls.dev/harness/hostile"
)

// FileName is the name of the ledger in the harness's folder of a state folder.
const FileName = "history.jsonl"

// Outcomes that a run has here beside those of a report.
const (
	Interrupted hostile.Outcome = "interrupted" // told to end, killed, or the machine went down
	Running     hostile.Outcome = "running"     // begun by a process that is still there
)

// Entry is one run. Times are UTC.
type Entry struct {
	Run      string                  `json:"run"`                // id of the run, "run_..."
	Reason   string                  `json:"reason"`             // why it ran: "start", "schedule", "change: runsc digest"
	Started  time.Time               `json:"started"`            //
	Finished time.Time               `json:"finished,omitzero"`  // zero while it runs, and when it was killed
	Outcome  hostile.Outcome         `json:"outcome,omitempty"`  // qualified, refused, unproven, interrupted, running
	Complete bool                    `json:"complete,omitempty"` // every trial was asked: only such a run qualifies a runner
	Why      string                  `json:"why,omitempty"`      // why it was interrupted, or could not be made
	Trials   map[hostile.Verdict]int `json:"trials,omitempty"`   // how many by verdict
	Fell     []string                `json:"fell,omitempty"`     // trials, by id
	Misnamed []string                `json:"misnamed,omitempty"` // trials, by id
	Drift    int                     `json:"drift,omitempty"`    // differences of what was in force from the last good run before
	Digests  Digests                 `json:"digests,omitzero"`   //
	Expires  time.Time               `json:"expires,omitzero"`   // of its attestation; zero without one
	Folder   string                  `json:"folder,omitempty"`   // where its report was put; a later run may have replaced it
	By       Process                 `json:"by,omitzero"`        // who made it
	BootID   string                  `json:"boot_id,omitempty"`  // of the boot it was made in
	Version  string                  `json:"version,omitempty"`  // of the harness
}

// Digests identify what was tried, each "sha256:<hex>" but for the kernel.
type Digests struct {
	Runtime string `json:"runtime,omitempty"` // of the runsc binary
	Config  string `json:"config,omitempty"`  // of the effective runner configuration
	Image   string `json:"image,omitempty"`   // of the base image, "empty" when there is none
	Harness string `json:"harness,omitempty"` // of the harness's binary
	Kernel  string `json:"kernel,omitempty"`  // release, uname -r
	Report  string `json:"report,omitempty"`  // of the bytes of report.json; empty when none was written
}

// Process names one process of one boot.
type Process struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks since boot: proc_pid_stat(5), field 22
}

// Good reports whether the run qualified the runner.
func (e Entry) Good() bool { return e.Outcome == hostile.Qualified && e.Complete }

// History is the ledger in one file. It holds nothing open: the file may be
// removed and made anew between two calls, and several processes may append.
type History struct {
	path string
	proc string // root of procfs
}

// New returns the ledger at path. Nothing is read or made.
func New(path string) *History { return &History{path: path, proc: "/proc"} }

// In returns the ledger of a runner's state folder.
func In(stateDir string) *History { return New(filepath.Join(stateDir, "harness", FileName)) }

// Path is where the ledger is.
func (h *History) Path() string { return h.path }

// Begin notes that a run begins, by this process. Of e it takes Run, Reason and
// Started. It returns when the line is on the disk; on an error no line was
// added, and those that were there are as they were.
func (h *History) Begin(e Entry) error {
	by, boot, err := h.self()
	if err != nil {
		return fmt.Errorf("history: begin %s: %w", e.Run, err)
	}
	begun := Entry{Run: e.Run, Reason: e.Reason, Started: e.Started, By: by, BootID: boot}
	if err := h.append(record{Event: eventBegun, Entry: begun}); err != nil {
		return fmt.Errorf("history: begin %s: %w", e.Run, err)
	}
	return nil
}

// Finish notes how a run ended. The line stands for itself: it tells all of
// the run, also when the line of its beginning was lost.
func (h *History) Finish(e Entry) error {
	if !finishedWith(e.Outcome) {
		return fmt.Errorf("history: finish %s: %q is no outcome of a finished run", e.Run, e.Outcome)
	}
	if err := h.append(record{Event: eventFinished, Entry: e}); err != nil {
		return fmt.Errorf("history: finish %s: %w", e.Run, err)
	}
	return nil
}

func finishedWith(o hostile.Outcome) bool {
	switch o {
	case hostile.Qualified, hostile.Refused, hostile.Unproven, Interrupted:
		return true
	}
	return false
}

// Entries returns the runs that started at since or later, in the order in
// which they were begun; the zero time means all. A ledger that is not there is
// empty. damage names each line that is torn or altered, in words; the other
// lines are told whatever is wrong with those.
//
// No lock is taken, so that nobody who may only read holds up a run: a last
// line that is told as torn may be one that is just being written.
func (h *History) Entries(since time.Time) (entries []Entry, damage []string, err error) {
	records, damage, err := h.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("history: %w", err)
	}
	all := h.merge(records)
	for _, e := range all {
		if !e.Started.Before(since) {
			entries = append(entries, e)
		}
	}
	return entries, damage, nil
}

// merge makes one entry of the lines of each run. A run that was begun and
// never finished was interrupted, unless the process that began it lives.
func (h *History) merge(records []record) []Entry {
	var out []Entry
	at := map[string]int{}
	for _, r := range records {
		i, known := at[r.Run]
		switch {
		case !known:
			at[r.Run] = len(out)
			out = append(out, r.Entry)
		case r.Event == eventFinished:
			by := out[i].By
			out[i] = r.Entry
			if out[i].By == (Process{}) {
				out[i].By = by
			}
		}
	}
	return h.settled(out)
}

// settled says of each run without an outcome what became of it.
func (h *History) settled(out []Entry) []Entry {
	for i, e := range out {
		switch {
		case e.Outcome != "":
		case h.alive(e.By, e.BootID):
			out[i].Outcome = Running
		default:
			out[i].Outcome, out[i].Why = Interrupted, "it was begun and never finished: killed, or the machine went down"
		}
	}
	return out
}

// LastGood returns the last run that qualified the runner; ok is false when
// there is none.
func (h *History) LastGood() (e Entry, ok bool, err error) {
	entries, _, err := h.Entries(time.Time{})
	if err != nil {
		return Entry{}, false, err
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Good() {
			return entries[i], true, nil
		}
	}
	return Entry{}, false, nil
}

// Kind is the part of the reason that is one of few words, for a metric or a
// table: "change" of "change: runsc digest". Whatever is not known is "other".
func (e Entry) Kind() string {
	kind, _, _ := strings.Cut(e.Reason, ":")
	for _, k := range Kinds {
		if kind == k {
			return k
		}
	}
	return "other"
}

// Kinds are the reasons that are told apart.
var Kinds = []string{"hand", "start", "schedule", "change", "deploy", "trigger", "retry", "clock", "expiry", "other"}
