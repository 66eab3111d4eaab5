package main

import (
	"fmt"
	"os"
	"strings"
)

// status are the lines of /proc/self/status by their names (proc_pid_status(5)).
type status map[string]string

// ownStatus reads the status of this process.
func ownStatus() (status, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("read own status: %w", err)
	}
	return parseStatus(string(b)), nil
}

func parseStatus(text string) status {
	s := status{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			s[name] = strings.Join(strings.Fields(value), " ")
		}
	}
	return s
}

// isZero tells whether a capability set of the status is there and empty.
func isZero(set string) bool { return set != "" && strings.Trim(set, "0") == "" }
