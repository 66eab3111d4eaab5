package suites

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tenwalls.dev/harness/sandbox/runsc"
)

// descriptors is the kinds and host targets of open descriptors, each with how it
// is open ("socket (read, write)"), over some looks at one process. How many
// there are of one is not kept: that is another number each time.
type descriptors struct {
	looks int
	seen  map[string]int // in how many looks
	first map[string]int // in which look for the first time
}

// add takes the descriptors of a process (proc_pid_fd(5), proc_pid_fdinfo(5)).
// One that is closed meanwhile was no lasting one.
func (d *descriptors) add(dir string, t runsc.Traces) {
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return
	}
	now := map[string]bool{}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, "fd", e.Name()))
		if err != nil {
			continue
		}
		flags, err := strconv.ParseUint(fields(filepath.Join(dir, "fdinfo", e.Name()))["flags"], 8, 64)
		if err != nil {
			continue
		}
		now[targetOf(target, t)+" ("+access(flags)+")"] = true
	}
	if len(now) == 0 {
		return // it has just ended
	}
	d.looks++
	if d.seen == nil {
		d.seen, d.first = map[string]int{}, map[string]int{}
	}
	for k := range now {
		if d.seen[k]++; d.seen[k] == 1 {
			d.first[k] = d.looks
		}
	}
}

// text is those that were open in most looks since the first that showed them, in
// order, in one line: a pidfd for a moment would be a difference between any two
// runs, and so would be what is opened late.
func (d *descriptors) text() string {
	var out []string
	for k, n := range d.seen {
		if 2*n > d.looks-d.first[k]+1 && (n > 1 || d.looks == 1) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// numbersOf is what names one socket, pipe or log file: "socket:[4711]".
var numbersOf = regexp.MustCompile(`:\[\d+\]|\.\d{8}-\d{6}\.\d+`)

// targetOf is what a descriptor leads to without what is this job's alone.
func targetOf(target string, t runsc.Traces) string {
	target = strings.TrimSuffix(target, " (deleted)")
	for _, own := range []struct{ path, words string }{
		{t.Scratch, "SCRATCH"}, {t.Inputs, "INPUTS"}, {t.Image, "IMAGE"}, {t.Root, "STATE"}, {t.Dir, "JOB"},
	} {
		if own.path != "" && (target == own.path || strings.HasPrefix(target, own.path+"/")) {
			target = own.words + strings.TrimPrefix(target, own.path)
			break
		}
	}
	// Where the runtime mounts the guest's files for itself (runsc/cmd/gofer.go).
	// Which of them are open is the guest's doing, and which mount is not.
	if below, ok := strings.CutPrefix(target, "/root/"); ok {
		first, _, _ := strings.Cut(below, "/")
		target = "/root/" + first
	}
	if t.Container != "" {
		target = strings.ReplaceAll(target, t.Container, "CONTAINER")
	}
	return numbersOf.ReplaceAllString(target, "")
}

// access is the part of open(2)'s flags that says what can be done with it.
func access(flags uint64) string {
	const path = 0o10000000 // O_PATH, as fdinfo shows it
	switch {
	case flags&path != 0:
		return "path"
	case int(flags&3) == os.O_RDONLY:
		return "read"
	case int(flags&3) == os.O_WRONLY:
		return "write"
	}
	return "read, write"
}
