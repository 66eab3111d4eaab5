//go:build tools

// Package tools pins the programs that the harness is tested against.
package tools

import _ "gvisor.dev/gvisor/runsc/cli/maincli"
