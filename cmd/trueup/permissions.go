// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"trueup.dev/cmd/trueup/internal/why"
)

func permissionsCommand() *subcommand {
	o := why.Options{}
	c := newSubcommand("permissions", "Show which permissions a running controller lacks and does not use")
	c.long = `permissions compares what the reconcilers of a running controller declare, what its calls have needed since
it started, and what the API server grants to its identity. What is missing is first. It reads this from the console, as
trueup why does.`
	c.example = `  trueup permissions --url http://127.0.0.1:8080/console/`
	connect := consoleFlags(c, &o)
	c.run = func(ctx context.Context, stdout, _ io.Writer) error {
		if err := connect(); err != nil {
			return err
		}
		return why.Permissions(ctx, stdout, o)
	}
	return c
}
