package observers

import (
	"cmp"
	"context"
	"fmt"
)

// Trees is the observer "trees": whether the image and the inputs are the same
// after the jobs as before (step 7 of the attempts). The image it reads once a
// run, with Before and After, because reading it once for each job would cost
// more than the jobs do. The inputs of a job appear with the job and go with it,
// so a Watch reads them when they are laid out and again when the job's last
// process is gone. A change that was undone in between is not seen.
type Trees struct {
	Temp string // where the control makes its throwaway tree, as [Host.Temp]
	// Holds are host paths that are in the trees of the run, for the control: it
	// fails where Before did not read one of them, so that an observer which looks
	// at another tree is blind.
	Holds []string

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

// After reads the trees again. The values are counts: "changed" trees, "entries"
// in all trees, and the trees that were compared, as "image"; Found names each
// changed tree and the first path that differs. It is lost when Before read no
// tree or a tree can't be read.
func (t *Trees) After(ctx context.Context) Observation {
	if len(t.roots) == 0 {
		return Observation{Observer: t.Name(), Lost: "no tree was read before the jobs"}
	}
	return t.compare(ctx, "image")
}

// Watch reads the input tree of a job that has one, as it is before the job
// starts; the watch is nil for a job that has none. Its values are those of
// After, with the compared trees as "inputs".
func (*Trees) Watch(ctx context.Context, s Subject) (Watch, error) {
	if s.Inputs == "" {
		return nil, nil //nolint:nilnil // there is nothing to watch
	}
	own := &Trees{}
	if err := own.Before(ctx, []string{s.Inputs}); err != nil {
		return nil, err
	}
	return &treesWatch{ctx: context.WithoutCancel(ctx), own: own, place: s.Place}, nil
}

type treesWatch struct {
	ctx   context.Context //nolint:containedctx // Ended is given none, and a tree may be large
	own   *Trees
	place string
	obs   Observation
}

// Sample does nothing: what counts is what is left behind.
func (*treesWatch) Sample() {}

// Ended reads the tree for the last time: the teardown removes it.
func (w *treesWatch) Ended() { w.obs = w.own.compare(w.ctx, "inputs") }

// Stored returns what Ended saw.
func (w *treesWatch) Stored() Observation {
	w.obs.Observer, w.obs.Place = w.own.Name(), w.place
	if w.obs.Samples == 0 && w.obs.Lost == "" {
		w.obs.Lost = "the input tree was not read again"
	}
	return w.obs
}

// compare reads the trees of Before again, and counts them as kind.
func (t *Trees) compare(ctx context.Context, kind string) Observation {
	o := Observation{Observer: t.Name()}
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
	trees := int64(len(t.roots))
	o.Values = map[string]Reading{
		"changed": {Worst: changed, After: changed, Unit: "count"},
		"entries": {Before: before, Worst: entries, After: entries, Unit: "count"},
		kind:      {Before: trees, Worst: trees, After: trees, Unit: "count"},
	}
	return o
}

// JoinTrees is what was seen of a run's trees and of one job's, as one
// observation of the job's place: lost when either is.
func JoinTrees(run, job Observation) Observation {
	out := Observation{Observer: job.Observer, Place: job.Place, Values: map[string]Reading{}, Samples: min(run.Samples, job.Samples), Lost: cmp.Or(run.Lost, job.Lost)}
	for _, o := range []Observation{run, job} {
		for name, r := range o.Values {
			sum := out.Values[name]
			out.Values[name] = Reading{Before: sum.Before + r.Before, Worst: sum.Worst + r.Worst, After: sum.After + r.After, Unit: r.Unit}
		}
		for _, what := range o.Found {
			out.Find(what)
		}
	}
	return out
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
