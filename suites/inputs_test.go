package suites

import (
	"slices"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
)

// Every trial of step 7 stands in a cell with inputs, or its wants could never
// be met, and the payload is told where it may write among them.
func TestOutsideHasInputs(t *testing.T) {
	for _, trial := range Trials() {
		if trial.Attempt != hostile.Outside {
			continue
		}
		j, o := sealed(t, trial.cell, trial.cell.trials)
		var paths []string
		for _, in := range j.Inputs {
			paths = append(paths, in.Path)
		}
		if !slices.Contains(paths, "submission.txt") || !slices.Contains(paths, "open/file") || o.Params["inputs_dir"] != "/inputs/open" {
			t.Errorf("%s: inputs %v, order %+v", trial.ID(), paths, o.Params)
		}
		if name, ok := strings.CutPrefix(trial.Route, "inputs-"); ok && !slices.Contains([]string{"create", "remount"}, name) && !slices.Contains(paths, "open/"+name) {
			t.Errorf("%s: no file of its own among %v", trial.ID(), paths)
		}
	}
}

func TestOtherCellsHaveNoInputs(t *testing.T) {
	if j, _ := sealed(t, cellNamed(t, "disk"), cellNamed(t, "disk").trials); len(j.Inputs) != 0 {
		t.Errorf("inputs %+v", j.Inputs)
	}
	if err := newSitting(cellNamed(t, "disk"), fakeScene(), nil, nil).openInputs(""); err != nil {
		t.Error(err)
	}
	if err := newSitting(cellNamed(t, "outside"), fakeScene(), nil, nil).openInputs(t.TempDir()); err == nil {
		t.Error("inputs that are not there were opened")
	}
}
