// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"trueup.dev/cmd/trueup/internal/why"
	"trueup.dev/console"
	"trueup.dev/observe/recording"
)

func recordCommand() *subcommand {
	o, output := why.Options{}, ""
	c := newSubcommand("record", "Write what a running controller saw and did for an object to a file for a test")
	c.arguments = "<kind> <name>"
	c.long = `record writes a recording of an object to a file: its reconciles with their causes, their calls and the
answers, and the objects of the answers. Values of Secrets and those that the recorder masks are replaced. The function
FromRecording of package converge makes a test of it. The console is that of trueup why. The recorder of the running
controller must keep objects: set Objects in recorder.Options.`
	c.example = `  trueup record website default/blog
  trueup record website blog --controller website --output testdata/blog.json`
	connect := consoleFlags(c, &o)
	c.flags.StringVar(&o.Controller, "controller", "", "`name` of the controller, if several reconcile the object")
	c.flags.StringVar(
		&output, "output", "", "`file` to write, or - for the standard output (default: the kind and the name)",
	)
	c.run = func(ctx context.Context, stdout, _ io.Writer) error {
		if err := connect(); err != nil {
			return err
		}
		o.Kind, o.Name = c.flags.Arg(0), c.flags.Arg(1)
		found, err := why.Record(ctx, o)
		if err != nil {
			return err
		}
		var content bytes.Buffer
		if err := recording.Write(&content, found); err != nil {
			return err
		}
		if output == "-" {
			_, err := stdout.Write(content.Bytes())
			return err
		}
		file := cmp.Or(output, console.FileName(found))
		if err := os.WriteFile(file, content.Bytes(), 0o600); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		_, err = fmt.Fprintf(
			stdout, "%s: %d reconciles of %s, %d bytes\n", file, len(found.Runs), found.Object, content.Len(),
		)
		return err
	}
	return c
}
