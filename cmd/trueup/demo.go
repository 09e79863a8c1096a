// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"trueup.dev/cmd/trueup/internal/demo"
)

func demoCommand() *cobra.Command {
	o := demo.Options{}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Show a controller at work, from start to clean end",
		Long: `demo starts a sandbox, runs the controller of the example kind Website in this process, and applies Websites.
It shows them turning ready; changes a theme, and shows that all sites follow; deletes children, and shows them
coming back; deletes a site, and shows that nothing of it stays. At the end it sums up what that took.

What it says is what it has seen through the API, with clients and watches apart from the controller's. The exit
code is 0 only if it has seen all of it, and the controller reported no error.`,
		Example: `  trueup demo
  trueup demo --stay
  trueup demo -f my-site.yaml -f more-sites/`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Timeout <= 0 {
				return fmt.Errorf("--timeout: has to be more than 0, is %s", o.Timeout)
			}
			o.Out, o.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			err := demo.Run(cmd.Context(), o)
			var input *demo.InputError
			var by interruption
			if err == nil || errors.As(err, &input) || errors.As(err, &by) {
				return err
			}
			return &failure{err}
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&o.Files, "filename", "f", nil, "a file or folder with Websites, and ConfigMaps and Namespaces for them, to show instead of the samples (may be repeated)")
	flags.BoolVar(&o.Stay, "stay", false, "keep everything running at the end, for kubectl, until interrupted")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long each chapter may take")
	flags.CountVarP(&o.Verbosity, "verbose", "v", "show the logs of the controller; -vv also those of the control plane")
	return command
}
