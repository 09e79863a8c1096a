// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

const (
	// VolumeProvisioner is the controller that creates, resizes and deletes volumes of the provisioner [Provisioner].
	VolumeProvisioner = "volume-provisioner-controller"

	// Provisioner is the provisioner in storage classes whose volumes are simulated.
	Provisioner = "simulated.trueup.dev"

	// StorageClass is the default storage class, with this provisioner.
	StorageClass = "standard"

	isDefaultClass = "storageclass.kubernetes.io/is-default-class"
)

// volumeProvisioner creates volumes that exist only as objects. Their source is a CSI driver that does not exist, so
// that no path of this machine appears in them.
type volumeProvisioner struct {
	setup
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	pods    corelisters.PodLister
}

func newVolumeProvisioner(_ context.Context, s setup) (runFunc, error) {
	v1, classes := s.informers.Core().V1(), s.informers.Storage().V1().StorageClasses()
	p := &volumeProvisioner{
		setup: s, claims: v1.PersistentVolumeClaims().Lister(), volumes: v1.PersistentVolumes().Lister(),
		classes: classes.Lister(), pods: v1.Pods().Lister(),
	}
	claims, volumes := newReconciler(p.syncClaim), newReconciler(p.syncVolume)
	enqueueAll := func(any) {
		all, _ := p.claims.List(labels.Everything()) // a lister of a cache returns no error
		for _, claim := range all {
			claims.enqueue(claim)
		}
	}
	err := errors.Join(
		claims.watch(v1.PersistentVolumeClaims().Informer(), claims.enqueue),
		claims.watch(classes.Informer(), enqueueAll),
		claims.watch(v1.Pods().Informer(), func(object any) {
			for _, name := range claimsOf(object.(*corev1.Pod)) {
				claims.queue.Add(cache.NewObjectName(object.(*corev1.Pod).Namespace, name))
			}
		}),
		volumes.watch(v1.PersistentVolumes().Informer(), volumes.enqueue),
	)
	return concurrently(p.createClass, claims.run, volumes.run), err
}

// createClass creates the default storage class if it does not exist.
func (p *volumeProvisioner) createClass(ctx context.Context) {
	_, err := p.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: StorageClass, Annotations: map[string]string{isDefaultClass: "true"}},
		Provisioner:          Provisioner,
		AllowVolumeExpansion: new(true),
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot create the default storage class")
	}
}

// claimsOf returns the names of the claims that the pod uses.
func claimsOf(pod *corev1.Pod) (names []string) {
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}

func (p *volumeProvisioner) syncClaim(ctx context.Context, key cache.ObjectName) error {
	claim, err := p.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if err != nil || claim.DeletionTimestamp != nil {
		return err
	}
	if claim.Spec.VolumeName != "" {
		return p.resize(ctx, claim)
	}
	if claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil || class.Provisioner != Provisioner {
		return err
	}
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if waits && claim.Annotations[volume.AnnSelectedNode] == "" {
		return p.selectNode(ctx, claim)
	}
	if claim.Annotations[volume.AnnStorageProvisioner] != Provisioner {
		return nil // the binder sets the annotation when a volume must be created
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, newVolume(claim, class), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// selectNode records the node of the first pod that uses the claim, as a scheduler does.
func (p *volumeProvisioner) selectNode(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	pods, err := p.pods.Pods(claim.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		for _, name := range claimsOf(pod) {
			if name == claim.Name {
				claim = claim.DeepCopy()
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnSelectedNode, pod.Spec.NodeName)
				_, err := p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
				return err
			}
		}
	}
	return nil
}

func newVolume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{volume.AnnDynamicallyProvisioned: Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: requestedStorage(claim)},
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			VolumeMode:                    claim.Spec.VolumeMode,
			VolumeAttributesClassName:     claim.Spec.VolumeAttributesClassName,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: Provisioner, VolumeHandle: name},
			},
		},
	}
}

func requestedStorage(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// resize grows the volume of a claim that requests more than it has.
func (p *volumeProvisioner) resize(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	pv, err := p.volumes.Get(claim.Spec.VolumeName)
	if err != nil || pv.Annotations[volume.AnnDynamicallyProvisioned] != Provisioner ||
		claim.Status.Phase != corev1.ClaimBound {
		return err
	}
	requested := requestedStorage(claim)
	capacity := map[string]any{"capacity": map[string]any{"storage": requested.String()}}
	if requested.Cmp(pv.Spec.Capacity[corev1.ResourceStorage]) > 0 {
		patch, err := json.Marshal(map[string]any{"spec": capacity})
		if err != nil {
			return err
		}
		if _, err := p.client.CoreV1().PersistentVolumes().Patch(
			ctx, pv.Name, types.MergePatchType, patch, metav1.PatchOptions{},
		); err != nil {
			return err
		}
	}
	if requested.Cmp(claim.Status.Capacity[corev1.ResourceStorage]) <= 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": capacity})
	if err != nil {
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(
		ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status",
	)
	return err
}

// syncVolume deletes a volume whose claim was deleted. The binder does this only for volumes of plugins.
func (p *volumeProvisioner) syncVolume(ctx context.Context, key cache.ObjectName) error {
	pv, err := p.volumes.Get(key.Name)
	if err != nil || pv.DeletionTimestamp != nil || pv.Status.Phase != corev1.VolumeReleased ||
		pv.Annotations[volume.AnnDynamicallyProvisioned] != Provisioner ||
		pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return err
	}
	if err := p.client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &pv.UID},
	}); err != nil {
		return fmt.Errorf("deleting the volume: %w", err)
	}
	return nil
}
