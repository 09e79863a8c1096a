// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"trueup.dev/cmd/trueup/internal/demo"
	"trueup.dev/sandbox"
)

func demoCommand() *subcommand {
	o := demo.Options{}
	var memory, real bool
	c := newSubcommand("demo", "Demonstrate a controller, from start to clean-up")
	c.long = `demo starts a sandbox, runs the controller of the example kind Website in this process, and applies Websites.
It waits until they are ready, changes a theme and shows that all sites follow, deletes children and shows that
they are created again, and deletes a site and shows that all of its objects are removed. It ends with a summary.

It runs on the real control plane if that has been built. Otherwise it runs at once on the API in memory; --real
builds the control plane first, which takes minutes but happens only once.

It prints only what it observed through the API, with its own clients and watches. The exit code is 0 only if
it observed every step and the controller reported no error.`
	c.example = `  trueup demo
  trueup demo --real
  trueup demo --stay
  trueup demo -f my-site.yaml -f more-sites/`
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		if o.Timeout <= 0 {
			return fmt.Errorf("--timeout: must be greater than 0, got %s", o.Timeout)
		}
		o.Out, o.Log = stdout, stderr
		var err error
		if o.Backend, err = chooseBackend(ctx, memory, real); err != nil {
			return err
		}
		if o.Backend == sandbox.Memory && !memory {
			_, _ = fmt.Fprint(stderr, demoNote)
		}
		err = demo.Run(ctx, o)
		var input *demo.InputError
		var by interruption
		if err == nil || errors.As(err, &input) || errors.As(err, &by) {
			return err
		}
		return &failure{err}
	}
	c.flags.BoolVar(&real, "real", false, "run on the real control plane, and build it if it does not exist")
	c.flags.BoolVar(&memory, "memory", false, "run on the API in memory, even if the real control plane has been built")
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

// demoNote is printed if the demo runs on the API in memory by default.
const demoNote = `The real control plane is not built yet, so the demo runs on the API in memory.
trueup demo --real builds it, which takes minutes but happens only once.
`

// chooseBackend returns what the demo runs on.
func chooseBackend(ctx context.Context, memory, real bool) (sandbox.Backend, error) {
	existing := os.Getenv(sandbox.KubeconfigVariable) != ""
	switch {
	case memory && real:
		return "", errors.New("--memory and --real: at most one may be set")
	case memory && existing:
		return "", fmt.Errorf("--memory: the environment variable %s selects an existing cluster", sandbox.KubeconfigVariable)
	case memory:
		return sandbox.Memory, nil
	case real:
		return sandbox.ControlPlane, nil
	case existing || os.Getenv(sandbox.BackendVariable) != "":
		return "", nil
	}
	built, err := sandbox.IsBuilt(ctx, sandbox.Options{})
	if err != nil || built {
		return sandbox.ControlPlane, err
	}
	return sandbox.Memory, nil
}
