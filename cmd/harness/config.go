package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/internal/watch"
	"tenwalls.dev/harness/internal/yamlfile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// defaultConfig is runsc.DefaultConfig, written out with comments.
//
//go:embed config_default.yaml
var defaultConfig []byte

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Write and check the runner configuration", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(cmd.Help(), usage(errors.New("say which subcommand of config")))
		},
	}
	c.AddCommand(&cobra.Command{
		Use: "init [FILE]", Short: "Write a commented default configuration; to stdout without FILE or for -",
		Long: "Write a commented default configuration. A file that is there is never overwritten.",
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-" {
				return printed(cmd.OutOrStdout().Write(defaultConfig))
			}
			return initConfig(args[0])
		},
	}, &cobra.Command{
		Use: "check FILE", Short: "Say what is wrong with a configuration, by file, line and field",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := runsc.LoadConfig(args[0])
			if err != nil {
				return usage(errors.Join(err, mistakenForRunner(args[0])))
			}
			warn(cmd.ErrOrStderr(), append(emptyFile(args[0]), missing(cmd.Context(), cfg)...))
			digest, err := cfg.Digest()
			if err != nil {
				return usage(err)
			}
			return printed(fmt.Fprintf(cmd.OutOrStdout(), "%s: no fault found, %s\n", args[0], digest))
		},
	})
	return c
}

// initConfig writes the default. The file appears whole or not at all.
func initConfig(file string) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usage(fmt.Errorf("write configuration: %s is there already and stays as it is: choose another name, or remove it first", file))
	case err != nil:
		return usage(fmt.Errorf("write configuration: %w", err))
	}
	_, err = f.Write(defaultConfig)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return usage(errors.Join(fmt.Errorf("write configuration: %w", err), os.Remove(file)))
	}
	return nil
}

// warn tells what is no fault. runsc's own words may be in it.
func warn(w io.Writer, all []string) {
	for _, s := range all {
		fmt.Fprintln(w, "harness: warning:", reports.Harmless(s))
	}
}

// emptyFile says so of a file that says nothing, which is most likely another
// than was meant.
func emptyFile(file string) []string {
	if data, err := os.ReadFile(file); err == nil && yamlfile.Empty(data) {
		return []string{file + " is empty: every value is the default"}
	}
	return nil
}

// mistakenForRunner says so when the file is a daemon's configuration.
func mistakenForRunner(file string) error {
	if _, err := watch.LoadConfig(file); err != nil {
		return nil
	}
	return fmt.Errorf("%s is a daemon configuration: harness watch --check looks at it", file)
}

// missing is what the configuration names and this host lacks. The file may be
// meant for another host, so these are warnings.
func missing(ctx context.Context, cfg runsc.Config) (out []string) {
	_, err := runsc.Identify(ctx, cfg.Runtime.Path)
	if err == nil {
		err = runsc.NotScript(cfg.Runtime.Path)
	}
	if err != nil {
		out = append(out, err.Error())
	}
	if cfg.Image != "" {
		if _, err := os.Stat(cfg.Image); err != nil {
			out = append(out, fmt.Sprintf("image: %s (an OCI layout or a root file system folder)", err))
		}
	}
	return out
}

// effective is the configuration to work with, and where it is from in words.
func effective(file string) (runsc.Config, string, error) {
	if file != "" {
		cfg, err := runsc.LoadConfig(file)
		if err != nil {
			return runsc.Config{}, "", usage(err)
		}
		return cfg, file, nil
	}
	cfg := runsc.DefaultConfig()
	path, found := findRunsc(cfg.Runtime.Path)
	cfg.Runtime.Path = path
	return cfg, "the embedded default, with runsc " + found, nil
}

// findRunsc looks where a build puts runsc, then where an installation does.
func findRunsc(usual string) (path, found string) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "runsc")
		if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return beside, "beside the harness: " + beside
		}
	}
	if p, err := exec.LookPath("runsc"); err == nil {
		if p, err = filepath.Abs(p); err == nil {
			return p, "from PATH: " + p
		}
	}
	return usual, "at the default path: " + usual
}
