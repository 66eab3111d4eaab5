package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tenwalls.dev/harness/internal/act"
)

func TestMain(m *testing.M) {
	act.Main() // as main does: the test binary is the harness
	testscript.Main(m, map[string]func(){
		"harness": func() { os.Exit(harness(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands,
	})
}

// commands are what the scripts have beyond testscript's own.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits":    exits,
	"asnobody": asNobody,
	"attest":   attested,
	"noted":    noted,
	"alter":    alter,
}

// exits runs the harness and wants exactly that exit code: exits CODE harness ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "harness" {
		ts.Fatalf("usage: exits CODE harness ARGS...")
	}
	ended(ts, args[0], program(ts, args[2:]))
}

// asNobody is exits as uid 65534: asnobody CODE harness ARGS...
func asNobody(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "harness" {
		ts.Fatalf("usage: asnobody CODE harness ARGS...")
	}
	cmd := program(ts, args[2:])
	if os.Geteuid() == 0 {
		self, err := os.Open("/proc/self/exe")
		ts.Check(err)
		defer self.Close()
		// By descriptor: nobody may not walk to the test's folder.
		cmd.Path, cmd.Dir, cmd.ExtraFiles = "/proc/self/fd/3", "/", []*os.File{self}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	ended(ts, args[0], cmd)
}

// program is the test binary, called as the harness.
func program(ts *testscript.TestScript, args []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "harness"
	cmd.Dir = ts.MkAbs(".")
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "CI", "NO_COLOR", "TERM", "GITHUB_STEP_SUMMARY"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

func ended(ts *testscript.TestScript, code string, cmd *exec.Cmd) {
	want, err := strconv.Atoi(code)
	ts.Check(err)
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("run harness: %v", err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// alter replaces one text of a file: alter FILE OLD NEW.
func alter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: alter FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(filepath.Clean(ts.MkAbs(args[0])), []byte(strings.Replace(text, args[1], args[2], 1)), 0o644))
}
