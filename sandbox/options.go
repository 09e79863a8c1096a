// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// BinaryVariable is the environment variable that names the control plane binary to start.
	BinaryVariable = "TRUEUP_CONTROLPLANE"
	// KubeconfigVariable is the environment variable that names the kubeconfig of an existing cluster to use instead of starting a control plane.
	KubeconfigVariable = "TRUEUP_KUBECONFIG"

	defaultStartTimeout = 60 * time.Second
)

// Options says which control plane to start and how. The zero value is ready to use.
type Options struct {
	// Binary is the path of the trueup-controlplane binary. Default: the environment variable TRUEUP_CONTROLPLANE; without it, the binary in the user's
	// cache folder, which is built when it is not there.
	Binary string

	// Kubeconfig is the path of a kubeconfig file; the cluster of its current context is used and nothing is started. Every field but Progress and
	// StartTimeout is without effect then. Default: the environment variable TRUEUP_KUBECONFIG; without it, a control plane is started.
	Kubeconfig string

	// Dir is the folder in which the control plane keeps certificates, data and kubeconfig; it stays, and a later Start with the same folder finds the same
	// objects. Default: a private temporary folder that is removed at the end.
	Dir string

	// Controllers names the controllers that run beside the API server, as kube-controller-manager names them ("garbage-collector-controller");
	// []string{"none"} runs none. Default: all that the control plane knows.
	Controllers []string

	// DisablePods leaves pods unscheduled and not running. Default: false, a runner without nodes moves pods to Running and onwards.
	DisablePods bool

	// Progress receives the progress of building and starting, written for people: one line that changes in place on a terminal, a line every ten seconds
	// elsewhere. Default: os.Stderr; io.Discard for silence.
	Progress io.Writer

	// Verbosity above 0 writes the control plane's logs of that level to LogOutput. Default: 0, no logs.
	Verbosity int

	// LogOutput receives the control plane's logs, from another goroutine, when Verbosity is above 0. Default: os.Stderr.
	LogOutput io.Writer

	// StartTimeout bounds the time from starting the control plane (building it is not counted) until its API is ready, and the first request to an existing
	// cluster. Default: 60 seconds.
	StartTimeout time.Duration
}

// prepare makes o ready to use, or reports every mistake in it.
func (o *Options) prepare() error {
	if err := o.validate(); err != nil {
		return err
	}
	return o.setDefaults()
}

// validate reports every mistake in o.
func (o *Options) validate() error {
	var problems []string
	if o.Binary != "" && o.Kubeconfig != "" {
		problems = append(problems, "Binary and Kubeconfig: at most one of them may be set")
	}
	for i, name := range o.Controllers {
		switch {
		case strings.TrimSpace(name) == "" || strings.Contains(name, ","):
			problems = append(problems, fmt.Sprintf("Controllers[%d]: %q is not the name of a controller", i, name))
		case name == "none" && len(o.Controllers) > 1:
			problems = append(problems, fmt.Sprintf("Controllers[%d]: \"none\" must be the only name", i))
		}
	}
	if o.Controllers != nil && len(o.Controllers) == 0 {
		problems = append(problems, "Controllers: empty but not nil; say []string{\"none\"} to run no controllers")
	}
	if o.Verbosity < 0 {
		problems = append(problems, fmt.Sprintf("Verbosity: must not be negative, is %d", o.Verbosity))
	}
	if o.StartTimeout < 0 {
		problems = append(problems, fmt.Sprintf("StartTimeout: must not be negative, is %s", o.StartTimeout))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New("sandbox: invalid options: " + strings.Join(problems, "\n"))
}

// setDefaults fills in what does not depend on the environment's files, and makes paths absolute: the control plane has another working directory.
func (o *Options) setDefaults() error {
	// An explicit field of either kind outranks both variables.
	if o.Binary == "" && o.Kubeconfig == "" {
		o.Kubeconfig = os.Getenv(KubeconfigVariable)
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.LogOutput == nil {
		o.LogOutput = os.Stderr
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	o.Controllers = slices.Clone(o.Controllers)
	for _, path := range []*string{&o.Dir, &o.Kubeconfig} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		*path = abs
	}
	return nil
}
