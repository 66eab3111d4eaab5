package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"tenwalls.dev/harness/sandbox/internal/printable"
)

// Bounds in bytes. They keep one job's JSON small enough to hash on every
// look, and the guest's argument vector within what execve(2) takes.
const (
	maxName     = 255     // key, principal, broker, scope, environment name
	maxText     = 1024    // reason, qualification
	maxString   = 1 << 17 // one argument or environment value: MAX_ARG_STRLEN, execve(2)
	maxStrings  = 4096    // arguments, or environment variables, in number
	maxExecSize = 1 << 20 // arguments and environment together
)

// validateExecString accepts what execve(2) and JSON both carry unchanged.
func validateExecString(s string) error {
	switch {
	case len(s) >= maxString:
		return fmt.Errorf("%d bytes, at most %d", len(s), maxString-1)
	case strings.IndexByte(s, 0) >= 0:
		return errors.New("contains NUL")
	case !utf8.ValidString(s):
		return errors.New("not valid UTF-8")
	}
	return nil
}

// validateExec checks the argument vector and the environment.
func validateExec(argv []string, env map[string]string) error {
	switch {
	case len(argv) == 0 || argv[0] == "":
		return fmt.Errorf("argv: no program: %w", printable.ErrEmpty)
	case len(argv) > maxStrings:
		return fmt.Errorf("argv: %d arguments, at most %d", len(argv), maxStrings)
	case len(env) > maxStrings:
		return fmt.Errorf("env: %d variables, at most %d", len(env), maxStrings)
	}
	size := 0
	for i, a := range argv {
		if err := validateExecString(a); err != nil {
			return fmt.Errorf("argv[%d]: %w", i, err)
		}
		size += len(a) + 1 // and its NUL
	}
	for _, name := range slices.Sorted(maps.Keys(env)) { // the same error every time
		value := env[name]
		if err := printable.Check(name, maxName); err != nil {
			return fmt.Errorf("env name: %w", err)
		}
		if strings.Contains(name, "=") {
			return fmt.Errorf("env name %q: contains '='", name)
		}
		if err := validateExecString(value); err != nil {
			return fmt.Errorf("env %q: %w", name, err)
		}
		size += len(name) + len(value) + 2 // '=' and NUL
	}
	if size > maxExecSize {
		return fmt.Errorf("argv and env: %d bytes together, at most %d", size, maxExecSize)
	}
	return nil
}
