package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tenwalls.dev/harness/hostile"
)

// memoryFile is in the state folder.
const memoryFile = "daemon.json"

// memory is what outlives the daemon beside the runs themselves: enough to tell
// only changes of the outcome, and to say what changed. It qualifies nothing.
type memory struct {
	Outcome  hostile.Outcome `json:"outcome"` // the last that was told
	Last     *Ran            `json:"last,omitempty"`
	LastGood *Ran            `json:"last_good,omitempty"`
}

// Ran is one run that has ended.
type Ran struct {
	ID       string          `json:"id"`
	Run      string          `json:"run,omitempty"`
	Cause    Cause           `json:"cause"`
	Reason   string          `json:"reason"`
	Outcome  hostile.Outcome `json:"outcome"`
	Trouble  string          `json:"trouble,omitempty"`
	Walls    []string        `json:"walls,omitempty"`
	Began    time.Time       `json:"began"`
	Ended    time.Time       `json:"ended"`
	Folder   string          `json:"folder,omitempty"`
	Identity Identity        `json:"identity"`

	Drift       []string `json:"drift,omitempty"`        // what is otherwise in force than in the last good run before, in words; bounded
	NotCompared string   `json:"not_compared,omitempty"` // why that is not known
}

// recall reads what an earlier daemon left. Nothing, when that is damaged: it is
// written whole or not at all, so somebody else did that.
func recall(dir string) (memory, error) {
	data, err := os.ReadFile(filepath.Join(dir, memoryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return memory{}, nil
	}
	if err != nil {
		return memory{}, fmt.Errorf("recall: %w", err)
	}
	var m memory
	if err := json.Unmarshal(data, &m); err != nil {
		return memory{}, fmt.Errorf("recall: %s: %w", filepath.Join(dir, memoryFile), err)
	}
	return m, nil
}

func (m memory) keep(dir string) error {
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return fmt.Errorf("keep what is known: %w", err)
	}
	if err := replace(filepath.Join(dir, memoryFile), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("keep what is known: %w", err)
	}
	return nil
}

// prune removes the oldest folders of runs beyond the number that is kept, and
// never one of those that are named.
func prune(dir string, keep int, never ...string) error {
	entries, err := os.ReadDir(dir) // sorted; names sort by time
	if err != nil {
		return fmt.Errorf("remove old runs: %w", err)
	}
	var runs []string
	for _, e := range entries {
		if e.IsDir() && filepath.Ext(e.Name()) != ".tmp" {
			runs = append(runs, e.Name())
		}
	}
	var errs []error
	spared := map[string]bool{}
	for _, n := range never {
		spared[filepath.Base(n)] = true
	}
	for _, name := range runs[:max(0, len(runs)-keep)] {
		if !spared[name] {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove old runs: %w", err)
	}
	return nil
}
