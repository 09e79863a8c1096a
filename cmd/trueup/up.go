// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/internal/manifests"
	"trueup.dev/sandbox"
)

func upCommand() *subcommand {
	var o upOptions
	c := newSubcommand("up", "Start a Kubernetes control plane and run it until interrupted")
	c.long = `up starts a Kubernetes control plane on this machine: API server, etcd, the common controllers, and a
simulated node for pods. It needs no root, no containers and no network. It prints how to use kubectl with it and
runs until it is interrupted. Then it removes everything.`
	c.example = `  trueup up
  trueup up -f config/crd -f config/samples --kubeconfig ./kubeconfig
  trueup up --dir ./cluster`
	c.flags.StringArrayVarP(
		&o.files, "filename", "f", nil,
		"apply the objects in the file or directory `path`; CRDs and namespaces are applied first (may be repeated)",
	)
	c.flags.StringVar(
		&o.dir, "dir", "", "keep the data in this `directory` for the next start (default: a temporary directory)",
	)
	c.flags.StringVar(
		&o.kubeconfig, "kubeconfig", "",
		"also write the kubeconfig to this `file`, which must not exist; it is removed at exit",
	)
	c.flags.CountVarP(&o.verbosity, "verbose", "v", "print the logs of the control plane; -vv prints more")
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error { return up(ctx, o, stdout, stderr) }
	return c
}

type upOptions struct {
	files      []string
	dir        string
	kubeconfig string
	verbosity  int
}

func up(ctx context.Context, o upOptions, stdout, stderr io.Writer) (err error) {
	if os.Getenv(sandbox.KubeconfigVariable) != "" {
		return fmt.Errorf(
			"the environment variable %s selects an existing cluster; unset it to start a control plane",
			sandbox.KubeconfigVariable,
		)
	}
	documents, err := manifests.Load(o.files, manifests.Rules{})
	if err != nil {
		return err
	}
	sb, err := sandbox.Start(ctx, sandbox.Options{Dir: o.dir, Verbosity: o.verbosity, Progress: stderr, LogOutput: stderr})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	defer func() { err = errors.Join(err, sb.Stop()) }()
	if err := apply(ctx, sb, documents); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}

	kubeconfig := sb.KubeconfigPath()
	if o.kubeconfig != "" {
		if err := copyNew(kubeconfig, o.kubeconfig); err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
		defer os.Remove(o.kubeconfig)
		kubeconfig = o.kubeconfig
	}
	s := screen.New(stdout)
	for _, document := range documents {
		s.Print("applied " + document.Title() + "\n")
	}
	s.Print(fmt.Sprintf(
		"Kubernetes is up at %s\n\n  %s\n  %s\n\nCtrl-C stops it%s.\n", sb.RESTConfig().Host,
		s.Paint(screen.Bold, "export KUBECONFIG="+kubeconfig), s.Paint(screen.Bold, "kubectl get namespaces"),
		afterwards(o.dir),
	))

	select {
	case <-ctx.Done():
		return nil // up ends by being interrupted
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

// copyNew copies a kubeconfig to a file that does not exist. It never overwrites a kubeconfig of the user.
func copyNew(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists", to)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
