// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"trueup.dev/cmd/trueup/internal/migrate"
)

// exitLeft is the exit code of the command migrate if something is left to do by hand.
const exitLeft = 3

func migrateCommand() *subcommand {
	o := migrate.Options{Dir: "."}
	c := newSubcommand("migrate", "Move a project from reconciler.io runtime or the Grafana App SDK to trueup")
	c.arguments, c.variadic = "[packages]", true
	c.long = `migrate rewrites the Go files of packages, by default ./..., and go.mod: import paths, type parameters,
names, fields and signatures that have changed since the version in use, and the versions of controller-runtime and
Kubernetes. It reads only source code: neither the old modules nor the network are needed. It prints what is left by
file and line, with the row of the guide in docs/migration.

Clients that the CLI of the Grafana App SDK generates are deleted: stores replace them. A client file that contains
anything else is kept.

It changes and deletes no file whose content git does not have, unless --force is set. Each file is replaced at once,
so a run that is interrupted leaves whole files.

Exit codes: 0 if nothing is left, 1 on failure, 3 if something is left to do by hand.`
	c.example = `  trueup migrate --diff
  trueup migrate
  go get trueup.dev@latest && go mod tidy && go vet ./...`
	c.flags.BoolVar(&o.Diff, "diff", false, "print a unified diff and write nothing")
	c.flags.BoolVar(&o.Diff, "dry-run", false, "the same as --diff")
	c.flags.BoolVar(&o.Force, "force", false, "also change files with changes that are not committed")
	from := c.flags.String("from", "", fmt.Sprintf(
		"the `versions` in use: one of %v (default: what go.mod and the imports say)", migrate.Generations,
	))
	c.run = func(ctx context.Context, stdout, _ io.Writer) error {
		o.From, o.Patterns = migrate.Generation(*from), c.flags.Args()
		if o.From != "" && !slices.Contains(migrate.Generations, o.From) {
			return fmt.Errorf("--from must be one of %v, got %q", migrate.Generations, *from)
		}
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
			o.Version = info.Main.Version
		}
		return migrate.Run(ctx, stdout, o)
	}
	return c
}
