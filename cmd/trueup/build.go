// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"trueup.dev/sandbox"
)

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the control plane, unless that has been done",
		Long: `build makes sure that the binary of the control plane is there, and prints its path. The other commands and tests
do the same when they need it; it is done ahead of them where minutes of building would get in the way.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := sandbox.Build(cmd.Context(), sandbox.Options{Progress: cmd.ErrOrStderr()})
			if err != nil {
				if cmd.Context().Err() != nil {
					return context.Cause(cmd.Context())
				}
				return err
			}
			if path == "" {
				path = "nothing to build: the environment names an existing cluster"
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
}
