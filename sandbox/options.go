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
	// BinaryVariable is the environment variable with the path of the control plane binary to start.
	BinaryVariable = "TRUEUP_CONTROLPLANE"
	// KubeconfigVariable is the environment variable with the path of the kubeconfig of an existing cluster. If it is set,
	// no control plane is started.
	KubeconfigVariable = "TRUEUP_KUBECONFIG"

	// defaultStartTimeout is long, because a machine with a load of ten needs more than a minute. A control plane that
	// cannot start ends, which is noticed at once.
	defaultStartTimeout    = 5 * time.Minute
	defaultExistingTimeout = time.Minute
)

// Options configures the control plane. The zero value is ready to use.
type Options struct {
	// Backend is what runs. Default: the environment variable TRUEUP_BACKEND; without it, ControlPlane.
	Backend Backend

	// Binary is the path of the trueup-controlplane binary. Default: the environment variable TRUEUP_CONTROLPLANE; without
	// it, the binary in the user's cache directory, which is built if it does not exist.
	Binary string

	// Kubeconfig is the path of a kubeconfig file. The cluster of its current context is used and no control plane is
	// started. All fields except Progress and StartTimeout are ignored then. Default: the environment variable
	// TRUEUP_KUBECONFIG; without it, in a test binary with USE_EXISTING_CLUSTER=true, the file that kubectl uses;
	// otherwise a control plane is started.
	Kubeconfig string

	// Dir is the directory for certificates, data and kubeconfig of the control plane. It is not removed, and a later
	// Start with the same directory finds the same objects. Default: a private temporary directory that is removed at the
	// end.
	Dir string

	// Controllers are the names of the controllers to run besides the API server, as in kube-controller-manager
	// ("garbage-collector-controller"). "*" stands for all that run by default, and "-name" removes one; if all names
	// begin with "+" or "-", they change the default. []string{"none"} runs none. Default: all controllers of the control
	// plane that run by default.
	Controllers []string

	// Port is the port of the API server on 127.0.0.1. Default: 0, a free port.
	Port int

	// DisablePods leaves pods unscheduled and not running. Default: false; a runner without nodes moves pods to Running
	// and later phases.
	DisablePods bool

	// APIServerArgs are flags of kube-apiserver, each as "name=value", for example "feature-gates=Name=true",
	// "enable-admission-plugins=Name" or "runtime-config=group/version=true". Flags for addresses, certificates and etcd
	// cannot be set. Default: none.
	APIServerArgs []string

	// EmulatedVersion is the minor version of Kubernetes whose APIs and features the control plane emulates, one of the
	// three before its own, for example "1.36". Default: "", no emulation.
	EmulatedVersion string

	// AuditLog is the path of a file to which the API server appends its audit events, one JSON document a line; the flag
	// "audit-policy-file" in APIServerArgs selects them. A control plane with an audit log is not shared. Default: "", no
	// audit log.
	AuditLog string

	// Progress receives human-readable progress of building and starting: one line that changes in place on a terminal,
	// otherwise a line every ten seconds. Default: os.Stderr; use io.Discard to disable it.
	Progress io.Writer

	// Verbosity above 0 writes the control plane's logs of that level to LogOutput. Default: 0, no logs.
	Verbosity int

	// LogOutput receives the control plane's logs if Verbosity is above 0, and errors of the API in memory that no
	// response returns. It is called from another goroutine. Default: os.Stderr.
	LogOutput io.Writer

	// StartTimeout limits the time from the start of the control plane until its API is ready, without the time to build
	// it. Default: five minutes. For an existing cluster it limits the first request. Default: one minute.
	StartTimeout time.Duration
}

// prepare sets defaults in o, or returns an error that lists every mistake.
func (o *Options) prepare() error {
	if err := o.validate(); err != nil {
		return err
	}
	return o.setDefaults()
}

// validate returns an error that lists every mistake in o.
func (o *Options) validate() error {
	var problems []string
	if o.Binary != "" && o.Kubeconfig != "" {
		problems = append(problems, "Binary and Kubeconfig: at most one may be set")
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
		problems = append(problems, "Controllers: empty but not nil; use []string{\"none\"} to run no controllers")
	}
	for i, arg := range o.APIServerArgs {
		if name, _, _ := strings.Cut(arg, "="); strings.TrimSpace(strings.TrimPrefix(name, "--")) == "" {
			problems = append(problems, fmt.Sprintf("APIServerArgs[%d]: must be \"name=value\", got %q", i, arg))
		}
	}
	if o.Port < 0 || o.Port > 65535 {
		problems = append(problems, fmt.Sprintf("Port: must be between 0 and 65535, got %d", o.Port))
	}
	if o.Verbosity < 0 {
		problems = append(problems, fmt.Sprintf("Verbosity: must not be negative, got %d", o.Verbosity))
	}
	if o.StartTimeout < 0 {
		problems = append(problems, fmt.Sprintf("StartTimeout: must not be negative, got %s", o.StartTimeout))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New("sandbox: invalid options: " + strings.Join(problems, "\n"))
}

// setDefaults sets defaults that do not depend on files, and makes paths absolute, because the control plane has
// another working directory.
func (o *Options) setDefaults() error {
	// If either field is set, all variables are ignored.
	if o.Binary == "" && o.Kubeconfig == "" {
		var err error
		if o.Kubeconfig, err = existingByVariable(); err != nil {
			return err
		}
	}
	if err := o.chooseBackend(); err != nil {
		return err
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.LogOutput == nil {
		o.LogOutput = os.Stderr
	}
	switch {
	case o.StartTimeout != 0:
	case o.Kubeconfig != "":
		o.StartTimeout = defaultExistingTimeout
	default:
		o.StartTimeout = defaultStartTimeout
	}
	o.Controllers, o.APIServerArgs = slices.Clone(o.Controllers), slices.Clone(o.APIServerArgs)
	for _, path := range []*string{&o.Dir, &o.Kubeconfig, &o.AuditLog} {
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
