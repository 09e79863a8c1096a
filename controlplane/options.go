// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// NoControllers as the only element of Options.Controllers disables all controllers.
const NoControllers = "none"

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

	// Controllers are the controllers to run, named as in kube-controller-manager. Default (nil): DefaultControllers.
	// []string{NoControllers} runs none.
	Controllers []string

	// DisablePods disables the pod runner and its node: pods stay unscheduled. Default: pods run.
	DisablePods bool

	// Verbosity is the klog level of the components' logs; above 0 they are also written to LogOutput. Default: 0, logs
	// are only written to controlplane.log in the data directory.
	Verbosity int

	// LogOutput receives the components' logs if Verbosity is above 0, and always the last messages of a component that
	// ends the process. Default: no output.
	LogOutput io.Writer
}

// DefaultControllers returns the controllers that run if Options.Controllers is nil: those that only use API objects.
// It omits controllers that need nodes, volumes, a cloud, metrics or a signing policy. They can be set in
// Options.Controllers.
func DefaultControllers() []string {
	return []string{
		names.ClusterRoleAggregationController,
		names.CronJobController,
		names.DaemonSetController,
		names.DeploymentController,
		names.DisruptionController,
		names.EndpointSliceController,
		names.EndpointSliceMirroringController,
		names.EndpointsController,
		names.GarbageCollectorController,
		names.JobController,
		names.NamespaceController,
		names.PersistentVolumeProtectionController,
		names.PersistentVolumeClaimProtectionController,
		names.PodGarbageCollectorController,
		names.ReplicaSetController,
		names.ReplicationControllerController,
		names.ResourceQuotaController,
		names.RootCACertificatePublisherController,
		names.ServiceCIDRController,
		names.ServiceAccountController,
		names.ServiceAccountTokenController,
		names.StatefulSetController,
		names.TTLAfterFinishedController,
		names.ValidatingAdmissionPolicyStatusController,
	}
}

// controllers resolves aliases and defaults.
func (o Options) controllers() []string {
	if o.Controllers == nil {
		return DefaultControllers()
	}
	if slices.Equal(o.Controllers, []string{NoControllers}) {
		return nil
	}
	aliases := kcm.ControllerAliases()
	resolved := make([]string, 0, len(o.Controllers))
	for _, name := range o.Controllers {
		if canonical, ok := aliases[name]; ok {
			name = canonical
		}
		resolved = append(resolved, name)
	}
	return resolved
}

// validate returns an error that lists every problem.
func (o Options) validate() error {
	var problems []error
	if o.Port < 0 || o.Port > 65535 {
		problems = append(problems, fmt.Errorf("port %d: must be between 0 (any free port) and 65535", o.Port))
	}
	if o.Verbosity < 0 {
		problems = append(problems, fmt.Errorf("verbosity %d: must not be negative", o.Verbosity))
	}
	known := kcm.KnownControllers()
	var unknown []string
	for _, name := range o.controllers() {
		if name == NoControllers {
			problems = append(problems, fmt.Errorf("controllers: %q must be the only name", NoControllers))
		} else if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		problems = append(problems, fmt.Errorf("controllers: %s: unknown to kube-controller-manager; known controllers: %s",
			strings.Join(unknown, ", "), strings.Join(known, ", ")))
	}
	return errors.Join(problems...)
}
