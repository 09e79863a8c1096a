// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/controller/volume/vacprotection"
	"k8s.io/kubernetes/pkg/features"
)

// storage are the controllers of volumes and their claims.
var storage = []descriptor{
	{
		name: names.EphemeralVolumeController, alias: "ephemeral-volume",
		client: "ephemeral-volume-controller", build: newEphemeralVolumes,
	},
	{
		name: names.PersistentVolumeBinderController, alias: "persistentvolume-binder",
		client: "persistent-volume-binder", build: newVolumeBinder,
	},
	{
		name: names.PersistentVolumeClaimProtectionController, alias: "pvc-protection",
		client: "pvc-protection-controller", build: newClaimProtection,
	},
	{
		name: names.PersistentVolumeProtectionController, alias: "pv-protection",
		client: "pv-protection-controller", build: newVolumeProtection,
	},
	{
		name: names.VolumeAttributesClassProtectionController, client: "volumeattributesclass-protection-controller",
		gates: []featuregate.Feature{features.VolumeAttributesClass}, build: newAttributesClassProtection,
	},
}

func newEphemeralVolumes(ctx context.Context, s setup) (runFunc, error) {
	core := s.informers.Core().V1()
	c, err := ephemeral.NewController(ctx, s.client, core.Pods(), core.PersistentVolumeClaims())
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, s.settings.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs), nil
}

// newVolumeBinder binds claims to volumes. It has no volume plugins, so volumes are only created by provisioners that
// watch claims, such as newVolumeProvisioner.
func newVolumeBinder(ctx context.Context, s setup) (runFunc, error) {
	core := s.informers.Core().V1()
	c, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                s.client,
		SyncPeriod:                s.settings.PersistentVolumeBinderController.PVClaimBinderSyncPeriod.Duration,
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             s.informers.Storage().V1().StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: true,
	})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newClaimProtection(ctx context.Context, s setup) (runFunc, error) {
	core := s.informers.Core().V1()
	c, err := pvcprotection.NewPVCProtectionController(
		klog.FromContext(ctx), core.PersistentVolumeClaims(), core.Pods(), s.client,
	)
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, 1), nil
}

func newVolumeProtection(ctx context.Context, s setup) (runFunc, error) {
	c, err := pvprotection.NewPVProtectionController(
		klog.FromContext(ctx), s.informers.Core().V1().PersistentVolumes(), s.client,
	)
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, 1), nil
}

func newAttributesClassProtection(ctx context.Context, s setup) (runFunc, error) {
	core := s.informers.Core().V1()
	c, err := vacprotection.NewVACProtectionController(klog.FromContext(ctx), s.client, core.PersistentVolumeClaims(),
		core.PersistentVolumes(), s.informers.Storage().V1().VolumeAttributesClasses())
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, 1), nil
}
