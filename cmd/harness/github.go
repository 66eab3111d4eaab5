package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// annotated makes a run whose output GitHub's runner reads. While the run talks
// no line is a command to the runner, whoever's words are in it: only the
// annotations at the end are. Errors are told here, so that they stand inside.
func annotated(f runFlags, n *note, run func(io.Writer) error, stdout io.Writer) error {
	token := rand.Text() // nobody inside can know it
	fmt.Fprintf(stdout, "::stop-commands::%s\n", token)
	err := run(struct{ io.Writer }{stdout}) // no terminal, wherever it is tried: plain lines
	if n.report != nil {
		err = errors.Join(err, summarize(os.Getenv("GITHUB_STEP_SUMMARY"), reports.Markdown(n.report)))
	}
	say(stdout, err)
	words := fmt.Sprintf("::%s::\n", token)
	file := inWorkspace(f.config, os.Getenv("GITHUB_WORKSPACE"))
	switch {
	case n.report != nil:
		words += reports.Annotations(n.report, file)
	case n.entry.Outcome != hostile.Qualified:
		words += reports.ErrorCommand(file, "run: "+string(n.entry.Outcome), n.entry.Why)
	}
	if _, e := io.WriteString(stdout, words); e != nil {
		return unproven(fmt.Errorf("write annotations: %w", e))
	}
	if err == nil {
		return nil
	}
	code := exitUnproven
	if e := (*exitError)(nil); errors.As(err, &e) {
		code = e.code
	}
	return &exitError{code: code} // all was said
}

// summarize adds to the step's summary, which earlier commands of the step may
// have begun. Outside GitHub there is none.
func summarize(path, words string) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return unproven(fmt.Errorf("GITHUB_STEP_SUMMARY: %w", err))
	}
	defer func() {
		if e := f.Close(); e != nil {
			err = errors.Join(err, unproven(fmt.Errorf("GITHUB_STEP_SUMMARY: %w", e)))
		}
	}()
	if _, err := io.WriteString(f, words+"\n"); err != nil {
		return unproven(fmt.Errorf("GITHUB_STEP_SUMMARY: %w", err))
	}
	return nil
}

// inWorkspace is the configuration's path from the root of the checked out
// repository, or "" when it is not in there: an annotation can point at nothing else.
func inWorkspace(file, workspace string) string {
	if file == "" || workspace == "" {
		return ""
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(workspace, abs)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return ""
	}
	return rel
}
