package observers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Trees is the observer "trees": whether the image and the inputs are the same
// after the jobs as before (step 7 of the attempts). It looks at the run as a
// whole, not at one job, because reading an image once for each job would cost
// more than the jobs do; so it has no Watch. A change that was undone between
// Before and After is not seen.
type Trees struct {
	Temp string // where the control makes its throwaway tree, as [Host.Temp]

	roots []string
	trees map[string][]treeEntry
}

// Name returns "trees".
func (*Trees) Name() string { return "trees" }

// Before reads the trees as they are before the first job.
func (t *Trees) Before(ctx context.Context, roots []string) error {
	t.roots, t.trees = roots, map[string][]treeEntry{}
	for _, root := range roots {
		tree, err := readTree(ctx, root)
		if err != nil {
			return err
		}
		t.trees[root] = tree
	}
	return nil
}

// After reads the trees again. The values are counts: "changed" trees and
// "entries" in all trees; Found names each changed tree and the first path that
// differs. It is lost when Before read no tree or a tree can't be read.
func (t *Trees) After(ctx context.Context) Observation {
	o := Observation{Observer: t.Name()}
	if len(t.roots) == 0 {
		o.Lost = "no tree was read before the jobs"
		return o
	}
	var changed, before, entries int64
	for _, root := range t.roots {
		tree, err := readTree(ctx, root)
		if err != nil {
			o.Lost = err.Error()
			return o
		}
		before += int64(len(t.trees[root]))
		entries += int64(len(tree))
		if difference := firstDifference(t.trees[root], tree); difference != "" {
			changed++
			o.Find(fmt.Sprintf("tree %s: %s", root, difference))
		}
	}
	o.Samples = 1
	o.Values = map[string]Reading{
		"changed": {Worst: changed, After: changed, Unit: "count"},
		"entries": {Before: before, Worst: entries, After: entries, Unit: "count"},
	}
	return o
}

// Control changes one byte in a throwaway tree and passes when it's seen, and
// nothing was seen before it.
func (t *Trees) Control(ctx context.Context) (c Control) {
	c = Control{Observer: t.Name(), Effect: "one byte changes in a throwaway tree", Want: "no change before, then this one file"}
	root, err := os.MkdirTemp(t.Temp, "tenwalls-trees-")
	if err != nil {
		c.Reason = fmt.Sprintf("make control tree: %v", err)
		return c
	}
	defer func() {
		if err := os.RemoveAll(root); err != nil {
			c.Passed, c.Reason = false, fmt.Sprintf("remove control tree: %v", err)
		}
	}()
	marked, own := filepath.Join(root, "marked"), &Trees{}
	write := func(text string) error { return os.WriteFile(marked, []byte(text), 0o600) }
	if err := errors.Join(write("before"), own.Before(ctx, []string{root})); err != nil {
		c.Reason = err.Error()
		return c
	}
	quiet := own.After(ctx)
	if err := write("beforf"); err != nil {
		c.Reason = fmt.Sprintf("change control tree: %v", err)
		return c
	}
	loud := own.After(ctx)
	c.Seen = fmt.Sprintf("%d changes before, then %q", quiet.Values["changed"].Worst, loud.Found)
	c.Passed = quiet.Lost == "" && len(quiet.Found) == 0 && len(loud.Found) == 1 &&
		loud.Found[0] == fmt.Sprintf("tree %s: changed at marked", root)
	if !c.Passed {
		c.Reason = cmp.Or(quiet.Lost, loud.Lost, "the change was not seen as made")
	}
	return c
}

func readTree(ctx context.Context, root string) ([]treeEntry, error) {
	var tree []treeEntry
	if err := walkTree(ctx, root, func(e treeEntry) { tree = append(tree, e) }); err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return tree, nil
}

// firstDifference compares two trees, both in the order of the walk. An entry
// that differs differs before what comes or goes behind it.
func firstDifference(before, after []treeEntry) string {
	for i := range min(len(before), len(after)) {
		old, now := before[i], after[i]
		switch {
		case old.path == now.path && old.sum == now.sum:
		case old.path == now.path:
			return "changed at " + now.path
		case contains(before[i:], now.path):
			return "removed at " + old.path
		default:
			return "added at " + now.path
		}
	}
	switch {
	case len(before) > len(after):
		return "removed at " + before[len(after)].path
	case len(after) > len(before):
		return "added at " + after[len(before)].path
	}
	return ""
}

func contains(tree []treeEntry, path string) bool {
	for _, entry := range tree {
		if entry.path == path {
			return true
		}
	}
	return false
}
