package reports

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/syscalls"
)

// inForce compares what was read back from a running sandbox.
func (c *comparison) inForce() {
	a, b := c.a.InForce, c.b.InForce
	if (len(a) == 0) != (len(b) == 0) { // a value that nobody read is not one that is gone
		c.change(InForce, "read back", "read back from a running sandbox", values(a), values(b), "")
		return
	}
	for _, k := range keys(a, b) {
		before, after := valueOf(a, k), valueOf(b, k)
		split := listed(k)
		if split == nil || before == notRead || after == notRead {
			c.change(InForce, k, nameOf(k), before, after, "")
			continue
		}
		// Only what came and went: the runtime writes its flags in any order.
		if moved := moves(split(before), split(after)); moved != "" {
			c.note(Change{InForce, k, before, after, nameOf(k) + ": " + moved})
		}
	}
}

// listed returns how to take apart a value that is a list; nil for one value.
func listed(key string) func(string) []string {
	switch {
	case strings.HasSuffix(key, " flags"):
		return flagsOf
	case strings.HasSuffix(key, " descriptors"):
		return func(s string) []string { return strings.Split(s, "; ") }
	}
	return nil
}

func values(m map[string]string) string {
	if len(m) == 0 {
		return nothingRead
	}
	return fmt.Sprintf("%d values", len(m))
}

// noLimit is how a limit is written where none is in force.
var noLimit = strconv.FormatInt(math.MaxInt64, 10)

// notRead stands for a value that one of two runs did not read back.
const notRead = "not read"

// nothingRead stands for all of them.
const nothingRead = "nothing"

func valueOf(m map[string]string, key string) string {
	v, ok := m[key]
	switch {
	case !ok:
		return notRead
	case v == noLimit && strings.HasSuffix(key, " limit"):
		return "none"
	}
	return v
}

// nameOf turns "cgroup: memory limit" into "memory limit of the job's cgroup".
func nameOf(key string) string {
	of, what, ok := strings.Cut(key, ": ")
	switch {
	case !ok:
		return key
	case of == "cgroup":
		return what + " of the job's cgroup"
	}
	return what + " of the " + of
}

// moves compares two lists whatever their order.
func moves(a, b []string) string {
	var words []string
	for _, f := range a {
		if !slices.Contains(b, f) {
			words = append(words, f+" before and not now")
		}
	}
	for _, f := range b {
		if !slices.Contains(a, f) {
			words = append(words, f+" now and not before")
		}
	}
	return strings.Join(words, ", ")
}

// flagsOf splits a command line, a value that stands apart with its flag. The
// word behind a flag that has its value is a command.
func flagsOf(line string) []string {
	var out []string
	for _, w := range strings.Fields(line) {
		if n := len(out) - 1; n >= 0 && !strings.HasPrefix(w, "-") && strings.HasPrefix(out[n], "-") && !strings.Contains(out[n], "=") {
			out[n] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// census compares which entry points the filter let through, and how it refused
// the rest. The numbers are the guest's own count: what they come to is judged by
// the trial, and any change is told here.
func (c *comparison) census(p pair) {
	if p.b.Attempt != hostile.Census.Name {
		return
	}
	a, b := countOf(p.a), countOf(p.b)
	points := "entry points"
	if p.b.Route != "all" { // the other routes count some of them otherwise
		points += " (" + p.b.Route + ")"
	}
	through := points + " let through"
	if a.through == b.through && a.allowed != b.allowed { // as many, and others
		c.note(Change{Census, "let through", a.allowed, b.allowed, through + ": " + a.through + " both times" + c.moved(a, b)})
	} else {
		c.change(Census, "let through", through, a.through, b.through, c.moved(a, b))
	}
	if (a.through == notCounted) != (b.through == notCounted) {
		return // so is the rest
	}
	for _, f := range []struct{ what, before, after string }{
		{"refused", a.refused, b.refused}, {"refused by", a.by, b.by}, {"undecided", a.undecided, b.undecided},
		{"beyond the allow list", a.beyond, b.beyond}, {"missing of the allow list", a.missing, b.missing},
	} {
		c.change(Census, f.what, points+" "+f.what, f.before, f.after, "")
	}
}

// notCounted stands for a number that was not recorded.
const notCounted = "not counted"

// count is one census, as it was recorded.
type count struct {
	through, refused, undecided, beyond, missing string // numbers, by the observer
	allowed, by                                  string // "0-1,3" and "EPERM 415, SIGSYS 0", by the claim
}

func countOf(t *Trial) count {
	read := func(value string) string {
		for _, o := range t.Observations {
			if r, ok := o.Values[value]; ok && o.Observer == hostile.Census.Name && o.Lost == "" {
				return strconv.FormatInt(r.After, 10)
			}
		}
		return notCounted
	}
	n := count{through: read("through"), refused: read("refused"), undecided: read("undecided"), beyond: read("beyond"), missing: read("missing")}
	if t.Claim == nil {
		return n
	}
	for _, part := range strings.Split(t.Claim.Note, "; ") {
		switch k, v, _ := strings.Cut(part, " "); k {
		case "allowed":
			n.allowed = v
		case "by":
			n.by = v
		}
	}
	return n
}

// moved names the entry points that are let through on one side only.
func (c *comparison) moved(a, b count) string {
	before, err1 := syscalls.Ranges(a.allowed)
	after, err2 := syscalls.Ranges(b.allowed)
	if err1 != nil || err2 != nil {
		return ""
	}
	words := ""
	for _, side := range []struct {
		title       string
		these, less []int
	}{{"now let through", after, before}, {"now refused", before, after}} {
		var names []string
		for _, n := range side.these {
			if !slices.Contains(side.less, n) {
				names = append(names, c.entryPoint(n))
			}
		}
		if len(names) > 0 {
			words += "; " + side.title + ": " + strings.Join(names, ", ")
		}
	}
	return words
}

// entryPoint names a number where both runs were on this architecture: on
// another it is another call.
func (c *comparison) entryPoint(n int) string {
	name := syscalls.Name(n)
	if name == "" || c.a.Host.Arch != runtime.GOARCH || c.b.Host.Arch != runtime.GOARCH {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d %s", n, name)
}
