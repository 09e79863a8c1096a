// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/sandbox"
)

// The values of --print, as of setup-envtest.
const (
	printEnv  = "env"
	printPath = "path"
)

func envtestCommand() *subcommand {
	print := printEnv
	c := newSubcommand("envtest", "Make the directory that KUBEBUILDER_ASSETS names for envtest")
	c.long = `envtest makes a directory with the commands etcd and kube-apiserver for controller-runtime's envtest, and
kubectl if one is on the PATH. Suites that use envtest run with them without changes. Nothing is downloaded except
Go modules: the control plane is built if it does not exist.`
	c.example = `  eval "$(trueup envtest)" && go test ./...
  KUBEBUILDER_ASSETS="$(trueup envtest -p path)" go test ./...`
	c.flags.StringVarP(
		&print, "print", "p", printEnv, "what to print: \"env\", a command for the shell, or \"path\", the directory alone",
	)
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		if print != printEnv && print != printPath {
			return fmt.Errorf("--print: must be %q or %q, got %q", printEnv, printPath, print)
		}
		dir, err := sandbox.EnvtestAssets(ctx, sandbox.Options{Progress: stderr})
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "kubectl")); err != nil {
			fmt.Fprintln(stderr, "no kubectl on the PATH: envtest's KubeCtl functions will fail, and nothing else")
		}
		line := dir
		if print == printEnv {
			line = "export KUBEBUILDER_ASSETS=" + screen.Quote(dir)
		}
		_, err = fmt.Fprintln(stdout, line)
		return err
	}
	return c
}
