// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"trueup.dev/sandbox"
)

func buildCommand() *subcommand {
	c := newSubcommand("build", "Build the control plane if it does not exist")
	c.long = `build builds the binary of the control plane if it does not exist, and prints its path. The other
commands and tests do the same when they need it. Run build in advance if they must not wait minutes for it.`
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		path, err := sandbox.Build(ctx, sandbox.Options{Progress: stderr})
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		if path == "" {
			path = "nothing to build: the environment selects an existing cluster"
		}
		_, err = fmt.Fprintln(stdout, path)
		return err
	}
	return c
}
