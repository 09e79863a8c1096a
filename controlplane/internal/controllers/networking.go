// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	"k8s.io/kubernetes/pkg/controller/servicecidrs"
	"k8s.io/kubernetes/pkg/features"
)

// networking are the controllers that maintain the endpoints and addresses of services.
var networking = []descriptor{
	{name: names.EndpointsController, alias: "endpoint", client: "endpoint-controller", build: newEndpoints},
	{
		name: names.EndpointSliceController, alias: "endpointslice",
		client: "endpointslice-controller", build: newEndpointSlices,
	},
	{
		name: names.EndpointSliceMirroringController, alias: "endpointslicemirroring",
		client: "endpointslicemirroring-controller", build: newEndpointSliceMirroring,
	},
	{
		name: names.ServiceCIDRController, client: "service-cidrs-controller",
		gates: []featuregate.Feature{features.MultiCIDRServiceAllocator}, build: newServiceCIDRs,
	},
}

func newEndpoints(ctx context.Context, s setup) (runFunc, error) {
	core, settings := s.informers.Core().V1(), s.settings.EndpointController
	c := endpoint.NewEndpointController(
		ctx, core.Pods(), core.Services(), core.Endpoints(), s.client, settings.EndpointUpdatesBatchPeriod.Duration,
	)
	return withWorkers(c.Run, settings.ConcurrentEndpointSyncs), nil
}

func newEndpointSlices(ctx context.Context, s setup) (runFunc, error) {
	core, settings := s.informers.Core().V1(), s.settings.EndpointSliceController
	c := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
		s.informers.Discovery().V1().EndpointSlices(), settings.MaxEndpointsPerSlice, s.client,
		settings.EndpointUpdatesBatchPeriod.Duration)
	return withWorkers(c.Run, settings.ConcurrentServiceEndpointSyncs), nil
}

func newEndpointSliceMirroring(ctx context.Context, s setup) (runFunc, error) {
	core, settings := s.informers.Core().V1(), s.settings.EndpointSliceMirroringController
	c := endpointslicemirroring.NewController(ctx, core.Endpoints(), s.informers.Discovery().V1().EndpointSlices(),
		core.Services(), settings.MirroringMaxEndpointsPerSubset, s.client,
		settings.MirroringEndpointUpdatesBatchPeriod.Duration)
	return withWorkers(c.Run, settings.MirroringConcurrentServiceEndpointSyncs), nil
}

func newServiceCIDRs(ctx context.Context, s setup) (runFunc, error) {
	const workers = 5
	v1 := s.informers.Networking().V1()
	return withWorkers(servicecidrs.NewController(ctx, v1.ServiceCIDRs(), v1.IPAddresses(), s.client).Run, workers), nil
}
