package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// self names this process.
func (h *History) self() (Process, string, error) {
	boot, err := h.boot()
	if err != nil {
		return Process{}, "", err
	}
	started, err := h.started(os.Getpid())
	if err != nil {
		return Process{}, "", err
	}
	return Process{PID: os.Getpid(), Started: started}, boot, nil
}

// alive tells whether that very process is there: a pid alone is given again.
// Where this cannot be read, as for another machine's ledger, it is not.
func (h *History) alive(p Process, bootID string) bool {
	boot, err := h.boot()
	if err != nil || p.PID <= 0 || boot != bootID {
		return false
	}
	started, err := h.started(p.PID)
	return err == nil && started == p.Started
}

func (h *History) boot() (string, error) {
	data, err := os.ReadFile(filepath.Join(h.proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

// started reads field 22 of proc_pid_stat(5). The second field is the name of
// the program in brackets, and may hold anything, brackets too.
func (h *History) started(pid int) (uint64, error) {
	name := filepath.Join(h.proc, strconv.Itoa(pid), "stat")
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	_, rest, ok := cutLast(string(data), ")")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0, fmt.Errorf("%s: no such form as proc_pid_stat(5) has", name)
	}
	if fields[0] == "Z" || fields[0] == "X" { // dead, and not yet waited for
		return 0, fmt.Errorf("%s: the process has ended", name)
	}
	n, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: start time: %w", name, err)
	}
	return n, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
