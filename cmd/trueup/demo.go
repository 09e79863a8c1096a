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
it observed every step and the controller reported no error.

With --replicas, each replica of the controller is a process, and the Websites are divided among them, see package
trueup.dev/shards. The demo kills one replica, changes all Websites, shows that the others take over its share when
its Lease has expired, and starts it again. A proxy records what each replica writes. The exit code is 0 only if all
Websites and their children have the last change, and each write was made by the replica that had the Website.
The sharder, which assigns the Websites to replicas, is a stand-in for that of kubernetes-controller-sharding, which
you install in a cluster. The Leases last 4 seconds instead of 15.`
	c.example = `  trueup demo
  trueup demo --real
  trueup demo --stay
  trueup demo -f my-site.yaml -f more-sites/
  trueup demo --replicas=3`
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		if o.Timeout <= 0 {
			return fmt.Errorf("--timeout: must be greater than 0, got %s", o.Timeout)
		}
		if c.flags.Changed("replicas") {
			if err := checkReplicas(o); err != nil {
				return err
			}
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
	c.flags.IntVar(
		&o.Replicas, "replicas", 0,
		fmt.Sprintf("run this `number` of replicas, from %d to %d, and kill one", fewestReplicas, mostReplicas),
	)
	c.flags.BoolVar(&o.Stay, "stay", false, "keep everything running at the end until interrupted, for use with kubectl")
	c.flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "timeout of each chapter")
	c.flags.CountVarP(
		&o.Verbosity, "verbose", "v", "print the logs of the controller; -vv also prints those of the control plane",
	)
	return c
}

// The limits of --replicas: another replica must take over, and each has Websites and a process.
const (
	fewestReplicas = 2
	mostReplicas   = 8
)

// checkReplicas checks the options of the demo of several replicas. The error lists all problems.
func checkReplicas(o demo.Options) error {
	var problems []error
	if o.Replicas < fewestReplicas || o.Replicas > mostReplicas {
		problems = append(
			problems, fmt.Errorf("--replicas: must be from %d to %d, got %d", fewestReplicas, mostReplicas, o.Replicas),
		)
	}
	if len(o.Files) > 0 {
		problems = append(problems, errors.New("--filename: cannot be combined with --replicas, which uses its own Websites"))
	}
	if o.Stay {
		problems = append(problems, errors.New("--stay: cannot be combined with --replicas"))
	}
	if os.Getenv(sandbox.KubeconfigVariable) != "" {
		problems = append(problems, fmt.Errorf(
			"--replicas: environment variable %s selects an existing cluster; the stand-in for the sharder must not run there",
			sandbox.KubeconfigVariable,
		))
	}
	return errors.Join(problems...)
}

// replicaCommand is the process of a replica in the demo.
func replicaCommand() *subcommand {
	c := newSubcommand(demo.ReplicaCommand, "")
	c.long = "demo-replica runs a replica of the controller for trueup demo --replicas, which starts it."
	c.run = func(_ context.Context, _, stderr io.Writer) error {
		// The demo decides when it ends, also if a terminal sends an interrupt to both.
		return demo.RunReplica(os.Stdin, stderr)
	}
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
