// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
)

func versionCommand() *subcommand {
	c := newSubcommand("version", "Print the version")
	c.run = func(_ context.Context, stdout, _ io.Writer) error {
		_, err := fmt.Fprintln(stdout, "trueup", version())
		return err
	}
	return c
}

// version returns the version of the module as recorded by the go command.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
