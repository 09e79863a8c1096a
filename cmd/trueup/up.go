// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/internal/objects/manifests"
	"trueup.dev/internal/serving/abandoned"
	"trueup.dev/sandbox"
	_ "trueup.dev/sandbox/memory" // for --memory
)

func upCommand() *subcommand {
	var o upOptions
	c := newSubcommand("up", "Start a Kubernetes control plane and run it until interrupted")
	c.long = `up starts a Kubernetes control plane on this machine: API server, etcd, the common controllers, and a
simulated node for pods. It needs no root, no containers and no network. It prints how to use kubectl with it and
runs until it is interrupted. Then it removes everything.`
	c.example = `  trueup up
  trueup up -f config/crd -f config/samples --kubeconfig ./kubeconfig
  trueup up --dir ./cluster
  trueup up --memory`
	c.flags.StringArrayVarP(
		&o.files, "filename", "f", nil,
		"apply the objects in the file or directory `path`; CRDs and namespaces are applied first (may be repeated)",
	)
	c.flags.StringVar(
		&o.dir, "dir", "", "keep the data in this `directory` for the next start (default: a temporary directory)",
	)
	c.flags.StringVar(
		&o.kubeconfig, "kubeconfig", "",
		"also write the kubeconfig to this `file`; it is removed at exit, and that of another program is never overwritten",
	)
	c.flags.BoolVar(
		&o.memory, "memory", false,
		"run the API in memory instead: it is ready at once, but has no authorization, webhooks or quotas",
	)
	c.flags.IntVar(&o.port, "port", 0, "`port` of the API server on 127.0.0.1 (default: a free port)")
	c.flags.StringSliceVar(
		&o.controllers, "controllers", nil,
		"`names` of the controllers to run, as in kube-controller-manager: \"*\" for the default, +name, -name, or \"none\"",
	)
	c.flags.BoolVar(&o.pods, "pods", true, "run pods on a simulated node")
	c.flags.StringVarP(
		&o.output, "output", "o", outputText, "output `format` when it is up: \"text\", or \"json\" for a single line",
	)
	c.flags.CountVarP(&o.verbosity, "verbose", "v", "print the logs of the control plane; -vv prints more")
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error { return up(ctx, o, stdout, stderr) }
	return c
}

// The values of --output.
const (
	outputText = "text"
	outputJSON = "json"
)

type upOptions struct {
	files       []string
	dir         string
	kubeconfig  string
	memory      bool
	port        int
	controllers []string
	pods        bool
	output      string
	verbosity   int
}

// upLine is printed with --output json. Programs parse it: names do not change.
type upLine struct {
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
	Dir        string `json:"dir"`
}

func up(ctx context.Context, o upOptions, stdout, stderr io.Writer) (err error) {
	if os.Getenv(sandbox.KubeconfigVariable) != "" {
		return fmt.Errorf(
			"the environment variable %s selects an existing cluster; unset it to start a control plane",
			sandbox.KubeconfigVariable,
		)
	}
	if o.output != outputText && o.output != outputJSON {
		return fmt.Errorf("--output: %q must be %q or %q", o.output, outputText, outputJSON)
	}
	if o.memory = o.memory || os.Getenv(sandbox.BackendVariable) == string(sandbox.Memory); o.memory && o.dir != "" {
		return errors.New("--dir: the API in memory keeps no data")
	}
	if o.kubeconfig != "" {
		if err := checkTarget(ctx, o.kubeconfig); err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	documents, err := manifests.Load(o.files, manifests.Rules{})
	if err != nil {
		return err
	}
	sb, err := sandbox.Start(ctx, sandbox.Options{
		Backend: backendOf(o.memory), Dir: o.dir, Port: o.port, Controllers: o.controllers, DisablePods: !o.pods,
		Verbosity: o.verbosity, Progress: stderr, LogOutput: stderr,
	})
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
		if err := copyNew(ctx, kubeconfig, o.kubeconfig); err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
		defer os.Remove(o.kubeconfig)
		kubeconfig = o.kubeconfig
	}
	if o.output == outputJSON {
		line := upLine{URL: sb.RESTConfig().Host, Kubeconfig: kubeconfig, Dir: sb.Dir()}
		if err := json.NewEncoder(stdout).Encode(line); err != nil {
			return err
		}
		return untilEnd(ctx, sb)
	}
	s := screen.New(stdout)
	for _, document := range documents {
		s.Print("applied " + document.Title() + "\n")
	}
	if o.memory {
		s.Print(memoryNote)
	}
	s.Print(fmt.Sprintf(
		"Kubernetes is up at %s\n\n  %s\n  %s\n\nCtrl-C stops it%s.\n", sb.RESTConfig().Host,
		s.Paint(screen.Bold, "export KUBECONFIG="+screen.Quote(kubeconfig)), s.Paint(screen.Bold, "kubectl get namespaces"),
		afterwards(o.dir),
	))
	return untilEnd(ctx, sb)
}

// memoryNote says what the API in memory is.
const memoryNote = `This is the API in memory, not a real control plane: no authorization, webhooks, policies or quotas.
docs/testing-on-a-real-api.md lists what differs.

`

func backendOf(memory bool) sandbox.Backend {
	if memory {
		return sandbox.Memory
	}
	return "" // the default
}

// untilEnd waits until the user or the control plane ends.
func untilEnd(ctx context.Context, sb *sandbox.Sandbox) error {
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

// checkTarget returns an error if a file exists, unless it is the kubeconfig of a control plane that has ended without
// removing it, because it was killed.
func checkTarget(ctx context.Context, file string) error {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if abandoned.Kubeconfig(ctx, file) {
		return nil
	}
	return fmt.Errorf("%s already exists", file)
}

// copyNew copies a kubeconfig to a file that does not exist. It never overwrites a kubeconfig of the user.
func copyNew(ctx context.Context, from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := checkTarget(ctx, to); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
