// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"trueup.dev/sandbox"
)

func buildCommand() *subcommand {
	c := newSubcommand("build", "Build the control plane, unless that has been done")
	c.long = `build makes sure that the binary of the control plane is there, and prints its path. The other commands and tests
do the same when they need it; it is done ahead of them where minutes of building would get in the way.`
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		path, err := sandbox.Build(ctx, sandbox.Options{Progress: stderr})
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		if path == "" {
			path = "nothing to build: the environment names an existing cluster"
		}
		_, err = fmt.Fprintln(stdout, path)
		return err
	}
	return c
}
