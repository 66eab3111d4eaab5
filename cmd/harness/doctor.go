package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/internal/cgroup"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// finding is one need of a run, looked at on this host.
type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Seen   string `json:"seen"`             // what is there, or what is wrong
	Remedy string `json:"remedy,omitempty"` // what to do about it
	Note   bool   `json:"note,omitempty"`   // for information: it fails nothing
}

// examine is how long the doctor takes at most. The controls take a second, unless
// the machine is very slow: then their own bound is longer, but within this one.
const examine = 5 * time.Minute

func doctorCommand() *cobra.Command {
	var config string
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Say which observers can see on this host, and what is missing",
		Long: `Say which observers can see on this host, and what is missing with the remedy.
Each observer's own control is run as a real run does it, in the same state_dir,
and one payload in a real sandbox under the configuration. Everything made for it
is removed; so is what a killed run or doctor left. Exit code 0 when all can see
and the sandbox ran, 3 otherwise.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, from, err := effective(config)
			if err != nil {
				return err
			}
			found := diagnose(cmd.Context(), cfg)
			if err := cmd.Context().Err(); err != nil {
				return interrupted(cmd.Context(), left(found))
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), found)
			} else {
				err = tell(cmd.OutOrStdout(), diagnosis(found, from))
			}
			if err != nil {
				return err
			}
			if ailing(found) > 0 {
				return &exitError{code: exitUnproven}
			}
			return nil
		},
	}
	c.Flags().StringVar(&config, "config", "", "runner configuration (default: the embedded one)")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, with all that was seen")
	return c
}

func ailing(found []finding) (n int) {
	for _, f := range found {
		if !f.OK && !f.Note {
			n++
		}
	}
	return n
}

// maxBrief bounds, in runes, what is shown of a need that is met.
const maxBrief = 100

// inBrief is what was seen: whole when something is wrong, else its beginning,
// of which --json has the rest.
func inBrief(f finding) string {
	seen := []rune(reports.Harmless(f.Seen))
	if f.OK && len(seen) > maxBrief {
		return string(seen[:maxBrief-3]) + "..."
	}
	return string(seen)
}

func diagnosis(found []finding, from string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "configuration: %s\n\n", reports.Harmless(from))
	for _, f := range found {
		mark := "ok"
		switch {
		case f.Note:
			mark = "note"
		case !f.OK:
			mark = "MISSING"
		}
		fmt.Fprintf(&b, "%-8s %-20s %s\n", mark, f.Name, inBrief(f))
		if f.Remedy != "" {
			fmt.Fprintf(&b, "%-8s %-20s remedy: %s\n", "", "", reports.Harmless(f.Remedy))
		}
	}
	if n := ailing(found); n > 0 {
		fmt.Fprintf(&b, "\n%d of %d needs are not met: a run here would be unproven.\n", n, len(found))
	} else {
		b.WriteString("\nEvery observer can see on this host, and a sandbox runs on it.\n")
	}
	return b.String()
}

// diagnose looks at the host's means first, then lets each observer show that
// it sees, with them.
func diagnose(ctx context.Context, cfg runsc.Config) []finding {
	ctx, cancel := context.WithTimeout(ctx, examine)
	defer cancel()
	var out []finding
	note := func(name, seen string, err error, remedy string) {
		f := finding{Name: name, OK: err == nil, Seen: seen}
		if err != nil {
			f.Seen, f.Remedy = err.Error(), remedy
		}
		out = append(out, f)
	}
	payload, err := fixtures.Guest()
	note("payload", fmt.Sprintf("%d bytes, embedded", len(payload)), err, "build with make build")
	id, err := runsc.Identify(ctx, cfg.Runtime.Path)
	if err == nil {
		err = runsc.NotScript(cfg.Runtime.Path)
	}
	note("runsc", fmt.Sprintf("%s %s at %s", id.Version, id.Digest, id.Path), err, "make build builds the pinned one beside the harness; or name another by runtime.path in a configuration")
	h, err := cgroup.Detect(observers.Local().Cgroup)
	seen := ""
	if err == nil {
		seen = fmt.Sprintf("version %d, with the controllers that are needed", h.Version())
	}
	note("cgroups", seen, err, "mount the memory, pids and cpuacct controllers (version 1), or enable memory and pids at the root (version 2)")
	if err := root(); err != nil {
		return append(out, finding{Name: "root", Seen: err.Error(), Remedy: "run harness doctor as root: nothing further can be looked at"})
	}
	note("root", "uid 0", nil, "")
	if h == nil {
		return append(out, finding{Name: "observers", Seen: "not looked at: they need cgroups", Remedy: "see cgroups"})
	}
	return append(out, examineObservers(ctx, cfg)...)
}
