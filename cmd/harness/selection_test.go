package main

import (
	"slices"
	"testing"

	"tenwalls.dev/harness/suites"
)

func TestSelection(t *testing.T) {
	for name, c := range map[string]struct {
		flags    runFlags
		in, out  string // ids that have to be selected, and must not be
		everyone bool
	}{
		"all":               {runFlags{}, "contract/census/all", "", true},
		"by number":         {runFlags{attempts: []string{"5"}}, "step-05/processor/relay", "step-06/memory/pipes", false},
		"by two names":      {runFlags{attempts: []string{"processor", "memory"}}, "step-06/memory/pipes", "step-01/credentials/shadow", false},
		"principal":         {runFlags{principal: true}, "step-01/credentials/shadow", "step-01/credentials/symlink", false},
		"label":             {runFlags{filter: "step:5"}, "step-05/processor/relay", "contract/census/all", false},
		"labels":            {runFlags{filter: "half:host && !contract"}, "step-05/processor/relay", "contract/census/all", false},
		"attempt and label": {runFlags{attempts: []string{"5"}, filter: "route:relay"}, "step-05/processor/relay", "step-05/processor/forks", false},
	} {
		selected, err := c.flags.selection()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var ids []string
		for _, trial := range suites.Trials() {
			if selected(trial) {
				ids = append(ids, trial.ID())
			}
		}
		if !slices.Contains(ids, c.in) || slices.Contains(ids, c.out) || (len(ids) == len(suites.Trials())) != c.everyone {
			t.Errorf("%s: selects %v", name, ids)
		}
	}
}
