package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=...). Without it the module's
// own version is told.
var version string

// ownVersion is the harness's version as reports carry it.
func ownVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the harness's version", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printed(fmt.Fprintf(cmd.OutOrStdout(), "harness %s %s %s/%s\n", ownVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
		},
	}
}

// arguments makes a wrong number of arguments a usage error.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath()))
		}
		return nil
	}
}

// printed is the error of writing a result. Nobody has seen a result that could
// not be written, so it ends as unproven.
func printed(_ int, err error) error {
	if err != nil {
		return unproven(fmt.Errorf("write result: %w", err))
	}
	return nil
}
