package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/suites"
)

// commandsOf is what the runner takes for commands of a step's output: a line
// "::stop-commands::TOKEN" stops them until the line "::TOKEN::".
func commandsOf(output string) []string {
	var out []string
	token := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case token != "" && line == "::"+token+"::":
			token = ""
		case token != "":
		case strings.HasPrefix(line, "::stop-commands::"):
			token = strings.TrimPrefix(line, "::stop-commands::")
		case strings.HasPrefix(line, "::") || strings.Contains(line, "##["):
			out = append(out, line)
		}
	}
	if token != "" {
		out = append(out, "still stopped")
	}
	return out
}

func TestGitHubTakesNoCommandOfTheGuest(t *testing.T) {
	workspace := t.TempDir()
	summary := filepath.Join(workspace, "summary.md")
	if err := os.WriteFile(summary, []byte("earlier\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	t.Setenv("GITHUB_WORKSPACE", workspace)
	f := runFlags{format: "github", config: filepath.Join(workspace, "ci/runner.yaml")}
	n, err := begin(t.TempDir(), "hand")
	if err != nil {
		t.Fatal(err)
	}
	const evil = "\n::error::lie\n::stop-commands::x\n::x::\n##[add-mask]secret | <img src=//h>"
	var out bytes.Buffer
	err = annotated(f, n, func(w io.Writer) error {
		if _, _, terminal := terminal(w); terminal {
			t.Error("it is a terminal")
		}
		fmt.Fprintln(w, "held "+evil)
		r := madeUp("runsc")
		r.Trials[0].Trouble = evil
		r.Trials[0] = suites.Judge(r.Trials[0])
		r.Outcome = suites.Outcome(r.Trials)
		n.judged(r)
		return errors.Join(exitOf(r.Outcome), unproven(errors.New("write: "+evil)))
	}, &out)
	var e *exitError
	if !errors.As(err, &e) || e.code != exitUnproven || e.err != nil {
		t.Errorf("err = %#v", err)
	}
	commands := commandsOf(out.String())
	if len(commands) != 1 || !strings.HasPrefix(commands[0], "::error file=ci/runner.yaml,title=tenwalls step 1 credentials%3A shadow%3A broken::") {
		t.Errorf("commands %q in\n%s", commands, out.String())
	}
	data, err := os.ReadFile(summary)
	if err != nil || !strings.HasPrefix(string(data), "earlier\n## tenwalls: unproven\n") || strings.Contains(string(data), "<img") {
		t.Errorf("summary %v:\n%s", err, data)
	}
}

func TestGitHubIsToldOfARunThatCameToNothing(t *testing.T) {
	t.Setenv("GITHUB_STEP_SUMMARY", "")
	n, err := begin(t.TempDir(), "hand")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = annotated(runFlags{}, n, func(io.Writer) error { return n.failed(errors.New("no runsc: 100%\n::error::lie")) }, &out)
	var e *exitError
	if !errors.As(err, &e) || e.code != exitUnproven {
		t.Errorf("err = %v", err)
	}
	want := []string{`::error title=tenwalls run%3A unproven::no runsc: 100%25\n::error::lie`}
	if got := commandsOf(out.String()); len(got) != 1 || got[0] != want[0] {
		t.Errorf("commands %q, want %q", got, want)
	}
}

// A summary that cannot be written makes no green step.
func TestGitHubSummaryThatCannotBeWritten(t *testing.T) {
	t.Setenv("GITHUB_STEP_SUMMARY", filepath.Join(t.TempDir(), "no", "such"))
	n, err := begin(t.TempDir(), "hand")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = annotated(runFlags{}, n, func(io.Writer) error {
		n.judged(madeUp("runsc"))
		return exitOf(hostile.Qualified)
	}, &out)
	var e *exitError
	if !errors.As(err, &e) || e.code != exitUnproven || !strings.Contains(out.String(), "GITHUB_STEP_SUMMARY") {
		t.Errorf("err = %v, said %s", err, out.String())
	}
}

func TestInWorkspace(t *testing.T) {
	for _, c := range [][3]string{
		{"/w/repo/ci/runner.yaml", "/w/repo", "ci/runner.yaml"}, {"/etc/runner.yaml", "/w/repo", ""}, {"", "/w/repo", ""}, {"/w/repo/a", "", ""},
		{"/w/repository/a", "/w/repo", ""}, {"/w/repo/..a", "/w/repo", "..a"},
	} {
		if got := inWorkspace(c[0], c[1]); got != c[2] {
			t.Errorf("%q in %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// Each call of the harness in the examples for CI is one that it takes.
func TestExamplesForCI(t *testing.T) {
	data, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, b := range strings.Split(string(data), "```yaml\n")[1:] {
		b, _, _ = strings.Cut(b, "\n```")
		var v map[string]any
		if err := yaml.Unmarshal([]byte(b), &v); err != nil || len(v) == 0 {
			t.Errorf("an example is no YAML: %v", err)
		}
		blocks++
	}
	if blocks != 2 {
		t.Errorf("%d examples in YAML", blocks)
	}
	calls := 0
	for _, line := range strings.Split(string(data), "\n") {
		_, call, ok := strings.Cut(line, "bin/harness ")
		if !ok {
			continue
		}
		call, _, _ = strings.Cut(strings.TrimSuffix(call, "'"), " ||")
		call, _, _ = strings.Cut(call, " >")
		args := strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(call))
		c, rest, err := command().Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil || c.Name() == "harness" {
			t.Errorf("%q: %v", line, err)
		}
		calls++
	}
	if calls < 6 {
		t.Errorf("only %d calls", calls)
	}
}
