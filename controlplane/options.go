// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io"

	"trueup.dev/controlplane/internal/controllers"
)

// NoControllers as the only element of Options.Controllers disables all controllers.
const NoControllers = controllers.None

// Options configure a control plane. The zero value is a temporary control plane on a free port with the default
// controllers and running pods.
type Options struct {
	// Dir is the directory for all data (etcd, certificates, keys, kubeconfig, log), which is kept for a restart. It is
	// created if it does not exist, and never removed. Default: a private temporary directory, removed on Stop.
	Dir string

	// Kubeconfig is an additional file for the admin kubeconfig (mode 0600), besides the one in the data directory. It is
	// written when the control plane is ready, and is removed on Stop. A file that was not written by a control plane is
	// never overwritten. Default: none.
	Kubeconfig string

	// Port is the port of kube-apiserver on 127.0.0.1. Default: a free port.
	Port int

	// StorageQuota is the maximum size of etcd's database in bytes. When it is reached, requests that write fail with
	// status 507 until objects are deleted. Default: 4 GiB.
	StorageQuota int64

	// Controllers selects the controllers to run, by the names of kube-controller-manager. Plain names run exactly these,
	// and "*" stands for DefaultControllers. "-name" removes a controller, as in kube-controller-manager, and "+name" adds
	// one; if all elements begin with "+" or "-", they change the default. Default (nil): DefaultControllers.
	// []string{NoControllers} runs none.
	Controllers []string

	// DisablePods disables the pod runner and its node: pods stay unscheduled. Default: pods run.
	DisablePods bool

	// APIServerArgs are flags of kube-apiserver, each as "name=value": feature gates, admission plugins, anything else
	// that its reference lists, except for those that the control plane sets itself, as certificates. A later flag
	// overrides an earlier one; flags with lists add to them. Default: none.
	APIServerArgs []string

	// EmulatedVersion is the minor version of Kubernetes whose APIs and feature gates kube-apiserver and the controllers
	// emulate, for example "1.36". It must be one of the three before KubernetesVersion. Bugs that were fixed since are
	// not emulated, and /version reports it as emulationMajor and emulationMinor only. Default: no emulation.
	EmulatedVersion string

	// AuditLog is a file to which kube-apiserver appends its audit events, one JSON document a line. Requests are logged
	// when they are complete, writes with their bodies, except for the bodies of Secrets and tokens. The flag
	// "audit-policy-file" in APIServerArgs selects other events. The file is created if it does not exist, and never
	// removed. Default: no audit log.
	AuditLog string

	// Verbosity is the klog level of the components' logs; above 0 they are also written to LogOutput. Default: 0, logs
	// are only written to controlplane.log in the data directory.
	Verbosity int

	// LogOutput receives the components' logs if Verbosity is above 0, and always the last messages of a component that
	// ends the process, and a warning when no space is left for data. Default: no output.
	LogOutput io.Writer
}

// storageQuota returns the quota with its default.
func (o Options) storageQuota() int64 {
	if o.StorageQuota == 0 {
		return defaultStorageQuota
	}
	return o.StorageQuota
}

// DefaultControllers returns the names of the controllers that run if Options.Controllers is nil: those that work
// without machines. KnownControllers has a few more.
func DefaultControllers() []string { return controllers.Default() }

// KnownControllers returns the names of all controllers that can be set in Options.Controllers.
func KnownControllers() []string { return controllers.Known() }

// controllers returns the names of the selected controllers. The options must be valid.
func (o Options) controllers() []string {
	names, _ := controllers.Resolve(o.Controllers)
	return names
}

// validate returns an error that lists every problem.
func (o Options) validate() error {
	var problems []error
	if o.Port < 0 || o.Port > 65535 {
		problems = append(problems, fmt.Errorf("port %d: must be between 0 (any free port) and 65535", o.Port))
	}
	if o.StorageQuota < 0 || o.StorageQuota > 0 && o.StorageQuota < minStorageQuota {
		problems = append(problems, fmt.Errorf("storage quota %d: must be at least %d", o.StorageQuota, minStorageQuota))
	}
	if o.Verbosity < 0 {
		problems = append(problems, fmt.Errorf("verbosity %d: must not be negative", o.Verbosity))
	}
	if err := o.validateAPIServerArgs(); err != nil {
		problems = append(problems, err)
	}
	if _, err := controllers.Resolve(o.Controllers); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
