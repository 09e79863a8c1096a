// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// runFunc runs a controller until its context is done, and returns when all its goroutines have ended.
type runFunc func(context.Context)

// descriptor describes a controller.
type descriptor struct {
	name  string
	alias string // another name that kube-controller-manager accepts, or empty

	// optional controllers only run if they are named.
	optional bool

	// gates are the feature gates that the controller needs. Without them, it is silently not built.
	gates []featuregate.Feature

	// client is the last part of the client's user agent.
	client string

	// build returns what runs the controller, or nil if it has nothing to do.
	build func(context.Context, setup) (runFunc, error)
}

// setup is what a controller is built with.
type setup struct {
	*environment
	name   string
	config *rest.Config
	client kubernetes.Interface
}

func (d descriptor) enabled() bool {
	return !slices.ContainsFunc(d.gates, func(gate featuregate.Feature) bool {
		return !utilfeature.DefaultFeatureGate.Enabled(gate)
	})
}

// catalog returns the descriptors of all controllers in the order in which they are built.
func catalog() []descriptor {
	return slices.Concat(core, workloads, networking, storage, certificates, nodes, own)
}

// leftOut are the controllers of kube-controller-manager and cloud-controller-manager that are not linked in, and the
// reason.
var leftOut = map[string]string{
	names.NodeIpamController:                     "it assigns address ranges to machines",
	names.PersistentVolumeAttachDetachController: "it attaches volumes to machines",
	names.PersistentVolumeExpanderController:     "it calls volume plugins; " + VolumeProvisioner + " resizes volumes",
	names.SELinuxWarningController:               "it inspects volumes of machines",
	"cloud-node-lifecycle-controller":            "it needs a cloud",
	"cloud-node-controller":                      "it needs a cloud",
	"node-route-controller":                      "it needs a cloud",
}
