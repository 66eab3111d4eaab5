package observers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Control changes one byte in each of two throwaway trees: one that stands, as
// the image does, and one that appears with a job and goes with it, as inputs
// do. It passes when both are seen, each as made, and nothing was seen before.
func (t *Trees) Control(ctx context.Context) (c Control) {
	c = Control{
		Observer: t.Name(), Effect: "one byte changes in a throwaway tree that stands, and one in a tree that comes and goes with a job",
		Want: "no change before, then these two files; and the run's own trees are those that hold what they should",
	}
	folder, err := os.MkdirTemp(t.Temp, "tenwalls-trees-")
	if err != nil {
		c.Reason = fmt.Sprintf("make control trees: %v", err)
		return c
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil {
			c.Passed, c.Reason = false, fmt.Sprintf("remove control trees: %v", err)
		}
	}()
	quiet, loud, err := controlTrees(ctx, filepath.Join(folder, "image"), filepath.Join(folder, "inputs"))
	if err != nil {
		c.Reason = err.Error()
		return c
	}
	c.Seen = fmt.Sprintf("%d changes before, then %q", quiet.Values["changed"].Worst, loud.Found)
	want := fmt.Sprintf("[tree %[1]s/image: changed at marked tree %[1]s/inputs: changed at marked]", folder)
	c.Passed = cmp.Or(quiet.Lost, loud.Lost) == "" && len(quiet.Found) == 0 && fmt.Sprint(loud.Found) == want &&
		loud.Values["image"].After == 1 && loud.Values["inputs"].After == 1
	if !c.Passed {
		c.Reason = cmp.Or(quiet.Lost, loud.Lost, "the changes were not seen as made")
		return c
	}
	for _, file := range t.Holds {
		if !t.read(file) {
			c.Passed, c.Reason = false, fmt.Sprintf("%s is in none of the trees that were read before the jobs: %q", file, t.roots)
		}
	}
	return c
}

// read tells whether Before read the file with its tree.
func (t *Trees) read(file string) bool {
	for root, tree := range t.trees {
		if below, err := filepath.Rel(root, file); err == nil && contains(tree, below) {
			return true
		}
	}
	return false
}

// controlTrees makes both trees, looks at them twice unchanged and twice
// changed, and removes the job's before the run's is read, as a teardown does.
func controlTrees(ctx context.Context, image, inputs string) (quiet, loud Observation, err error) {
	run := &Trees{}
	write := func(root, text string) error {
		return os.WriteFile(filepath.Join(root, "marked"), []byte(text), 0o600)
	}
	if err := errors.Join(os.Mkdir(image, 0o700), write(image, "before"), run.Before(ctx, []string{image})); err != nil {
		return quiet, loud, err
	}
	look := func(imageText, inputsText string) (Observation, error) {
		if err := errors.Join(os.Mkdir(inputs, 0o700), write(inputs, "before")); err != nil {
			return Observation{}, err
		}
		job, err := run.Watch(ctx, Subject{Place: "control", Inputs: inputs})
		if err != nil {
			return Observation{}, err
		}
		err = errors.Join(write(image, imageText), write(inputs, inputsText))
		job.Ended()
		err = errors.Join(err, os.RemoveAll(inputs))
		return JoinTrees(run.After(ctx), job.Stored()), err
	}
	if quiet, err = look("before", "before"); err != nil {
		return quiet, loud, err
	}
	loud, err = look("beforf", "beforf")
	return quiet, loud, err
}
