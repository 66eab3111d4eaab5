package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

var (
	_ = route("credentials", "environment", func(p *Probe) {
		call := "read the own environment"
		p.Reached(call, "")
		p.lookForVariables(call, os.Environ())
	})
	_ = route("credentials", "init-environ", initEnviron)
)

// secretFormat is the public form of every secret that a run plants, so that it
// can be recognised without being known.
var secretFormat = regexp.MustCompile(`twsecret-[0-9a-f]{32}`)

func initEnviron(p *Probe) {
	const path = "/proc/1/environ"
	st, ok := p.present(path)
	if !ok {
		return
	}
	call := "read " + path
	_, note := owned(st, unix.R_OK)
	p.Reached(call, note)
	b, err := os.ReadFile(path)
	if err != nil {
		p.refusedBy(call, unix.SYS_OPENAT, errnoOf(err), byOwnership(st, unix.R_OK))
		return
	}
	p.lookForVariables(call, strings.Split(strings.TrimRight(string(b), "\x00"), "\x00"))
}

// lookForVariables claims the first variable that the job did not declare or
// that holds a secret of this run, or that there is none.
func (p *Probe) lookForVariables(call string, variables []string) {
	declared := strings.Split(p.ParamOr("env", ""), ",")
	var names []string
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case v == "":
			continue
		case secretFormat.MatchString(v):
			p.Happened(call, int64(len(v)), fmt.Sprintf("a secret in a variable: %q", v))
			return
		case !slices.Contains(declared, name) && !ofRuntime(name, value):
			p.Happened(call, int64(len(v)), fmt.Sprintf("not declared by the job: %q", v))
			return
		}
		names = append(names, name)
	}
	p.Refused(hostile.Absent, hostile.Environment, call, int64(len(names)), "only: "+strings.Join(names, ", "))
}

// ofRuntime tells whether runsc itself set that variable: it adds HOME, from the
// image's /etc/passwd or "/", to a job that declares none. Anything but a plain
// path under that name is not its doing.
func ofRuntime(name, value string) bool {
	return name == "HOME" && strings.HasPrefix(value, "/") && !strings.ContainsAny(value, ":= \n")
}
