// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/sandbox"
)

func upCommand() *cobra.Command {
	var o upOptions
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a Kubernetes control plane, and keep it until interrupted",
		Long: `up starts a Kubernetes control plane on this machine: API server, etcd, the common controllers, and pods that run
without nodes. It needs no root, no containers and no network. It says how to use kubectl with it, and stays until
it is interrupted; then everything is removed.`,
		Example: `  trueup up
  trueup up --dir ./cluster --kubeconfig ./cluster.kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.dir, "dir", "", "keep the data in this folder, for the next time (default: a temporary folder)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "also write the kubeconfig to this file, which must not exist; it is removed at the end")
	flags.CountVarP(&o.verbosity, "verbose", "v", "show the logs of the control plane; more of them with -vv")
	return command
}

type upOptions struct {
	dir        string
	kubeconfig string
	verbosity  int
}

func up(ctx context.Context, o upOptions, stdout, stderr io.Writer) (err error) {
	if os.Getenv(sandbox.KubeconfigVariable) != "" {
		return fmt.Errorf("the environment variable %s names a cluster that is up already", sandbox.KubeconfigVariable)
	}
	sb, err := sandbox.Start(ctx, sandbox.Options{Dir: o.dir, Verbosity: o.verbosity, Progress: stderr, LogOutput: stderr})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	defer func() { err = errors.Join(err, sb.Stop()) }()

	kubeconfig := sb.KubeconfigPath()
	if o.kubeconfig != "" {
		if err := copyNew(kubeconfig, o.kubeconfig); err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
		defer os.Remove(o.kubeconfig)
		kubeconfig = o.kubeconfig
	}
	s := screen.New(stdout)
	s.Print(fmt.Sprintf("Kubernetes is up at %s\n\n  %s\n  %s\n\nCtrl-C stops it%s.\n", sb.RESTConfig().Host,
		s.Paint(screen.Bold, "export KUBECONFIG="+kubeconfig), s.Paint(screen.Bold, "kubectl get namespaces"), afterwards(o.dir)))

	select {
	case <-ctx.Done():
		return nil // being interrupted is how this ends
	case <-sb.Done():
		return fmt.Errorf("the control plane has ended: %w", sb.Err())
	}
}

func afterwards(dir string) string {
	if dir == "" {
		return " and removes everything"
	}
	return "; " + dir + " keeps the data"
}

// copyNew copies a kubeconfig to a file that does not exist: one that does may be all that somebody has.
func copyNew(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and is not overwritten", to)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
