package suites

import (
	"errors"
	"fmt"
	"os"
	"path"

	"tenwalls.dev/harness/sandbox"
)

// openFolder is the folder among a cell's inputs in which ownership lets the job
// do everything, so that it is the mount that refuses.
const openFolder = "open"

// outsideInputs are the inputs of the cells of step 7: a submission as any job
// is given one, and in the open folder a file for the walk over all mounts and
// one for each route, so that no act hides another.
func outsideInputs() []string {
	out := []string{"submission.txt"}
	for _, n := range []string{"file", "append", "rename", "chmod"} {
		out = append(out, openFolder+"/"+n)
	}
	return out
}

func outsideParams(s *Scene) map[string]string {
	p := setUIDParams(s)
	p["inputs_dir"] = sandbox.InputsPath + "/" + openFolder
	return p
}

// inputs puts the cell's inputs on the shelf. What is in them is of no account.
func (s *sitting) inputs() []sandbox.Input {
	var out []sandbox.Input
	for _, p := range s.cell.Inputs {
		out = append(out, sandbox.Input{Path: p, Ref: s.scene.shelf.add([]byte("input "+p+" of "+s.cell.Name+"\n"), s.cell.Name)})
	}
	return out
}

// nobody is the identity of every job.
const nobody = 65534

// openInputs opens the open folder of the laid-out inputs to the job: 0777, and
// what is in it 0666 and the job's own. The runner lays inputs out as root's,
// 0444 in folders of 0755, where ownership answers before the mount is asked. It
// is done in the job's own folder and before anything runs in it; the folder is
// the runner's, which removes it with the job.
func (s *sitting) openInputs(inputs string) (err error) {
	if len(s.cell.Inputs) == 0 {
		return nil
	}
	root, err := os.OpenRoot(inputs)
	if err != nil {
		return fmt.Errorf("open the inputs to the job: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, p := range s.cell.Inputs {
		if path.Dir(p) != openFolder {
			continue
		}
		if err := errors.Join(root.Chmod(openFolder, 0o777), root.Lchown(p, nobody, nobody), root.Chmod(p, 0o666)); err != nil {
			return fmt.Errorf("open the inputs to the job: %w", err)
		}
	}
	return nil
}
