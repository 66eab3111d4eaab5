package sandbox

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"tenwalls.dev/harness/sandbox/internal/printable"
)

const (
	maxPath      = 1024 // bytes
	maxComponent = 255  // bytes: NAME_MAX, limits.h(0p)
)

// validatePath accepts the relative name of a file below a guest folder, in
// its one spelling. It is stricter than the guest's kernel needs: a name that
// any tool on the way could read as leading elsewhere is refused here, once.
// Links cannot be named at all, since every path is a regular file's.
func validatePath(p string) error {
	if err := printable.Check(p, maxPath); err != nil {
		return err
	}
	switch {
	case path.IsAbs(p):
		return fmt.Errorf("%q: absolute", p)
	case strings.Contains(p, `\`):
		return fmt.Errorf("%q: contains a backslash", p)
	}
	for c := range strings.SplitSeq(p, "/") {
		switch {
		case c == "" || c == "." || c == "..":
			return fmt.Errorf("%q: component %q", p, c)
		case len(c) > maxComponent:
			return fmt.Errorf("component of %d bytes, at most %d", len(c), maxComponent)
		}
	}
	return nil
}

// validateTree checks paths one by one and then together: no file twice, and
// no file that another one needs as a folder. The second rule also keeps a
// file from being followed as though it were a link to a folder.
func validateTree(paths []string) error {
	files := make(map[string]struct{}, len(paths))
	for _, p := range paths {
		if err := validatePath(p); err != nil {
			return err
		}
		if _, twice := files[p]; twice {
			return fmt.Errorf("%q: declared twice", p)
		}
		files[p] = struct{}{}
	}
	var errs []error
	for _, p := range paths {
		for folder := path.Dir(p); folder != "."; folder = path.Dir(folder) {
			if _, clash := files[folder]; clash {
				errs = append(errs, fmt.Errorf("%q: %q is a file", p, folder))
				break
			}
		}
	}
	return errors.Join(errs...)
}
