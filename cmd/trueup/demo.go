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
	c := newSubcommand("demo", "Show a controller at work, from start to clean end")
	c.long = `demo starts a sandbox, runs the controller of the example kind Website in this process, and applies Websites.
It shows them turning ready; changes a theme, and shows that all sites follow; deletes children, and shows them
coming back; deletes a site, and shows that nothing of it stays. At the end it sums up what that took.

What it says is what it has seen through the API, with clients and watches apart from the controller's. The exit
code is 0 only if it has seen all of it, and the controller reported no error.`
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
	c.flags.StringArrayVarP(&o.Files, "filename", "f", nil, "a `path` of a file or folder with Websites, and ConfigMaps and Namespaces for them, to show instead of the samples (may be repeated)")
	c.flags.BoolVar(&o.Stay, "stay", false, "keep everything running at the end, for kubectl, until interrupted")
	c.flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long each chapter may take")
	c.flags.CountVarP(&o.Verbosity, "verbose", "v", "show the logs of the controller; -vv also those of the control plane")
	return c
}
