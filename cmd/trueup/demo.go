// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"trueup.dev/cmd/trueup/internal/demo"
)

func demoCommand() *subcommand {
	o := demo.Options{}
	c := newSubcommand("demo", "Demonstrate a controller, from start to clean-up")
	c.long = `demo starts a sandbox, runs the controller of the example kind Website in this process, and applies Websites.
It waits until they are ready, changes a theme and shows that all sites follow, deletes children and shows that
they are created again, and deletes a site and shows that all of its objects are removed. It ends with a summary.

It prints only what it observed through the API, with its own clients and watches. The exit code is 0 only if
it observed every step and the controller reported no error.`
	c.example = `  trueup demo
  trueup demo --stay
  trueup demo -f my-site.yaml -f more-sites/`
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		if o.Timeout <= 0 {
			return fmt.Errorf("--timeout: must be greater than 0, got %s", o.Timeout)
		}
		o.Out, o.Log = stdout, stderr
		err := demo.Run(ctx, o)
		var input *demo.InputError
		var by interruption
		if err == nil || errors.As(err, &input) || errors.As(err, &by) {
			return err
		}
		return &failure{err}
	}
	c.flags.StringArrayVarP(
		&o.Files,
		"filename",
		"f",
		nil,
		"use the Websites, ConfigMaps and Namespaces in the file or directory `path` "+
			"instead of the samples (may be repeated)",
	)
	c.flags.BoolVar(&o.Stay, "stay", false, "keep everything running at the end until interrupted, for use with kubectl")
	c.flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "timeout of each chapter")
	c.flags.CountVarP(
		&o.Verbosity, "verbose", "v", "print the logs of the controller; -vv also prints those of the control plane",
	)
	return c
}
