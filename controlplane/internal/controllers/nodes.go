// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/devicetainteviction"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/resourcepoolstatusrequest"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/ttl"
	"k8s.io/kubernetes/pkg/features"
)

// nodes are the controllers of nodes and devices. Three are optional because they would evict the pods of the simulated
// node, which has no leases and tolerates every taint.
var nodes = []descriptor{
	{
		name: names.DeviceTaintEvictionController, optional: true, client: names.DeviceTaintEvictionController,
		gates: []featuregate.Feature{features.DynamicResourceAllocation, features.DRADeviceTaints},
		build: newDeviceTaintEviction,
	},
	{
		name: names.NodeLifecycleController, alias: "nodelifecycle", optional: true,
		client: "node-controller", build: newNodeLifecycle,
	},
	{
		name: names.ResourcePoolStatusRequestController, client: "resourcepoolstatusrequest-controller",
		gates: []featuregate.Feature{features.DRAResourcePoolStatus}, build: newResourcePoolStatus,
	},
	{name: names.TaintEvictionController, optional: true, client: "node-controller", build: newTaintEviction},
	{name: names.TTLController, alias: "ttl", client: "ttl-controller", build: newNodeTTL},
}

func newDeviceTaintEviction(_ context.Context, s setup) (runFunc, error) {
	resource := s.informers.Resource().V1()
	c := devicetainteviction.New(s.client, s.informers.Core().V1().Pods(), resource.ResourceClaims(),
		resource.ResourceSlices(), resource.DeviceTaintRules(), resource.DeviceClasses(), s.name)
	workers := int(s.settings.DeviceTaintEvictionController.ConcurrentSyncs)
	return func(ctx context.Context) {
		if err := c.Run(ctx, workers); err != nil {
			klog.ErrorS(err, "Device taints no longer evict pods")
		}
	}, nil
}

func newNodeLifecycle(ctx context.Context, s setup) (runFunc, error) {
	core, settings := s.informers.Core().V1(), s.settings.NodeLifecycleController
	c, err := nodelifecycle.NewNodeLifecycleController(ctx, s.informers.Coordination().V1().Leases(), core.Pods(),
		core.Nodes(), s.informers.Apps().V1().DaemonSets(), s.client, settings.NodeMonitorPeriod.Duration,
		settings.NodeStartupGracePeriod.Duration, settings.NodeMonitorGracePeriod.Duration, settings.NodeEvictionRate,
		settings.SecondaryNodeEvictionRate, settings.LargeClusterSizeThreshold, settings.UnhealthyZoneThreshold)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newResourcePoolStatus(ctx context.Context, s setup) (runFunc, error) {
	resource := s.informers.Resource()
	c, err := resourcepoolstatusrequest.NewController(ctx, s.client, resource.V1alpha3().ResourcePoolStatusRequests(),
		resource.V1().ResourceSlices(), resource.V1().ResourceClaims(), resource.V1().DeviceTaintRules())
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, 1), nil
}

func newTaintEviction(ctx context.Context, s setup) (runFunc, error) {
	core := s.informers.Core().V1()
	c, err := tainteviction.New(ctx, s.client, core.Pods(), core.Nodes(), s.name)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newNodeTTL(ctx context.Context, s setup) (runFunc, error) {
	const workers = 5
	return withWorkers(ttl.NewTTLController(ctx, s.informers.Core().V1().Nodes(), s.client).Run, workers), nil
}
