// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1beta1"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
	"k8s.io/kubernetes/pkg/controller/scheduling/podgroupprotection"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/features"
)

// workloads are the controllers that create and count pods.
var workloads = []descriptor{
	{name: names.CronJobController, alias: "cronjob", client: "cronjob-controller", build: newCronJobs},
	{name: names.DaemonSetController, alias: "daemonset", client: "daemon-set-controller", build: newDaemonSets},
	{name: names.DeploymentController, alias: "deployment", client: "deployment-controller", build: newDeployments},
	{name: names.DisruptionController, alias: "disruption", client: "disruption-controller", build: newDisruptions},
	{
		name: names.HorizontalPodAutoscalerController, alias: "horizontalpodautoscaling",
		client: "horizontal-pod-autoscaler", build: newPodAutoscaler,
	},
	{name: names.JobController, alias: "job", client: "job-controller", build: newJobs},
	{name: names.PodGarbageCollectorController, alias: "podgc", client: "pod-garbage-collector", build: newPodCollector},
	{
		name: names.PodGroupProtectionController, client: names.PodGroupProtectionController,
		gates: []featuregate.Feature{features.GenericWorkload}, build: newPodGroupProtection,
	},
	{name: names.ReplicaSetController, alias: "replicaset", client: "replicaset-controller", build: newReplicaSets},
	{
		name: names.ReplicationControllerController, alias: "replicationcontroller",
		client: "replication-controller", build: newReplicationControllers,
	},
	{
		name: names.ResourceClaimController, alias: "resource-claim-controller", client: "resource-claim-controller",
		gates: []featuregate.Feature{features.DynamicResourceAllocation}, build: newResourceClaims,
	},
	{name: names.StatefulSetController, alias: "statefulset", client: "statefulset-controller", build: newStatefulSets},
	{
		name: names.TTLAfterFinishedController, alias: "ttl-after-finished",
		client: "ttl-after-finished-controller", build: newTTLAfterFinished,
	},
}

func newCronJobs(ctx context.Context, s setup) (runFunc, error) {
	c, err := cronjob.NewControllerV2(ctx, s.informers.Batch().V1().Jobs(), s.informers.Batch().V1().CronJobs(), s.client)
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, s.settings.CronJobController.ConcurrentCronJobSyncs), nil
}

func newDaemonSets(ctx context.Context, s setup) (runFunc, error) {
	const minBackoff, maxBackoff = time.Second, 15 * time.Minute // as in kube-controller-manager
	apps, core := s.informers.Apps().V1(), s.informers.Core().V1()
	c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(),
		s.client, flowcontrol.NewBackOff(minBackoff, maxBackoff))
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, s.settings.DaemonSetController.ConcurrentDaemonSetSyncs), nil
}

func newDeployments(ctx context.Context, s setup) (runFunc, error) {
	apps := s.informers.Apps().V1()
	c, err := deployment.NewDeploymentController(
		ctx, apps.Deployments(), apps.ReplicaSets(), s.informers.Core().V1().Pods(), s.client,
	)
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, s.settings.DeploymentController.ConcurrentDeploymentSyncs), nil
}

func newDisruptions(ctx context.Context, s setup) (runFunc, error) {
	scales, err := s.scales()
	if err != nil {
		return nil, err
	}
	apps, core := s.informers.Apps().V1(), s.informers.Core().V1()
	c := disruption.NewDisruptionController(ctx, core.Pods(), s.informers.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), s.client, s.mapper,
		scales, s.client.Discovery())
	return withWorkers(c.Run, s.settings.DisruptionController.ConcurrentDisruptionSyncs), nil
}

// scales returns a client for the scale subresource of any kind.
func (s setup) scales() (scale.ScalesGetter, error) {
	resolver := scale.NewDiscoveryScaleKindResolver(s.client.Discovery())
	return scale.NewForConfig(s.config, s.mapper, dynamic.LegacyAPIPathResolverFunc, resolver)
}

func newJobs(ctx context.Context, s setup) (runFunc, error) {
	var groups schedulinginformers.PodGroupInformer
	var loads schedulinginformers.WorkloadInformer
	if utilfeature.DefaultFeatureGate.Enabled(features.WorkloadWithJob) {
		scheduling := s.informers.Scheduling().V1beta1()
		groups, loads = scheduling.PodGroups(), scheduling.Workloads()
	}
	c, err := job.NewController(
		ctx, s.client, s.informers.Core().V1().Pods(), s.informers.Batch().V1().Jobs(), loads, groups,
	)
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, s.settings.JobController.ConcurrentJobSyncs), nil
}

func newPodGroupProtection(ctx context.Context, s setup) (runFunc, error) {
	c, err := podgroupprotection.NewPodGroupProtectionController(klog.FromContext(ctx),
		s.informers.Scheduling().V1beta1().PodGroups(), s.informers.Core().V1().Pods(), s.client)
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, 1), nil
}

func newReplicaSets(ctx context.Context, s setup) (runFunc, error) {
	c := replicaset.NewReplicaSetController(
		ctx, s.informers.Apps().V1().ReplicaSets(), s.informers.Core().V1().Pods(), s.client, replicaset.BurstReplicas,
	)
	return withWorkers(c.Run, s.settings.ReplicaSetController.ConcurrentRSSyncs), nil
}

func newReplicationControllers(ctx context.Context, s setup) (runFunc, error) {
	core := s.informers.Core().V1()
	c := replication.NewReplicationManager(
		ctx, core.Pods(), core.ReplicationControllers(), s.client, replication.BurstReplicas,
	)
	return withWorkers(c.Run, s.settings.ReplicationController.ConcurrentRCSyncs), nil
}

func newResourceClaims(ctx context.Context, s setup) (runFunc, error) {
	resource := s.informers.Resource().V1()
	c, err := resourceclaim.NewController(klog.FromContext(ctx), s.client, s.informers.Core().V1().Pods(),
		s.informers.Scheduling().V1beta1().PodGroups(), resource.ResourceClaims(), resource.ResourceClaimTemplates())
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, s.settings.ResourceClaimController.ConcurrentSyncs), nil
}

func newStatefulSets(ctx context.Context, s setup) (runFunc, error) {
	apps, core := s.informers.Apps().V1(), s.informers.Core().V1()
	c := statefulset.NewStatefulSetController(
		ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), s.client,
	)
	return withWorkers(c.Run, s.settings.StatefulSetController.ConcurrentStatefulSetSyncs), nil
}

func newTTLAfterFinished(ctx context.Context, s setup) (runFunc, error) {
	c := ttlafterfinished.New(ctx, s.informers.Batch().V1().Jobs(), s.client)
	return withWorkers(c.Run, s.settings.TTLAfterFinishedController.ConcurrentTTLSyncs), nil
}
