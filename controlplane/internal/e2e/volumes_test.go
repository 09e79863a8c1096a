// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claimManifest returns a claim "data" with a line that names its class, if any.
func claimManifest(class string) string {
	return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {` + class + `
		accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
}

// bound waits until the claim is bound and returns its volume.
func (p *process) bound(t *testing.T, namespace, name string) *corev1.PersistentVolume {
	t.Helper()
	var volume *corev1.PersistentVolume
	eventually(t, waitLimit, "claim "+name+" bound", func(ctx context.Context) error {
		claim, err := p.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("status %+v", claim.Status)
		}
		volume, err = p.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		return err
	})
	return volume
}

func TestClaimIsBoundResizedAndItsVolumeDeleted(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, namespace, claimManifest(""))
	volume := p.bound(t, namespace, "data")
	if volume.Spec.StorageClassName != "standard" || volume.Spec.CSI == nil || volume.Spec.HostPath != nil {
		t.Errorf("volume = %+v, want class standard and a CSI source", volume.Spec)
	}
	claims := p.client.CoreV1().PersistentVolumeClaims(namespace)
	if _, err := claims.Patch(t.Context(), "data", types.MergePatchType,
		[]byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "claim resized", func(ctx context.Context) error {
		claim, err := claims.Get(ctx, "data", metav1.GetOptions{})
		if err == nil && claim.Status.Capacity.Storage().String() != "2Gi" {
			err = fmt.Errorf("status %+v", claim.Status)
		}
		return err
	})
	if err := claims.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "volume deleted", func(ctx context.Context) error {
		got, err := p.client.CoreV1().PersistentVolumes().Get(ctx, volume.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("volume %+v, error %w", got.Status, err)
	})
}

func TestVolumeIsRetained(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, "", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: retained},
		provisioner: simulated.trueup.dev, reclaimPolicy: Retain}`)
	p.apply(t, namespace, claimManifest("storageClassName: retained,"))
	volume := p.bound(t, namespace, "data")
	if err := p.client.CoreV1().PersistentVolumeClaims(namespace).Delete(
		t.Context(), "data", metav1.DeleteOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "volume released", func(ctx context.Context) error {
		got, err := p.client.CoreV1().PersistentVolumes().Get(ctx, volume.Name, metav1.GetOptions{})
		if err == nil && got.Status.Phase != corev1.VolumeReleased {
			err = fmt.Errorf("status %+v", got.Status)
		}
		return err
	})
}

func TestClaimWaitsForItsFirstConsumer(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, "", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late},
		provisioner: simulated.trueup.dev, volumeBindingMode: WaitForFirstConsumer}`)
	p.apply(t, namespace, claimManifest("storageClassName: late,"))
	// The binder reports this when it has seen the claim.
	eventually(t, waitLimit, "event WaitForFirstConsumer", func(ctx context.Context) error {
		events, err := p.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=data,reason=WaitForFirstConsumer",
		})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("no event")
		}
		return err
	})
	claim, err := p.client.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil || claim.Status.Phase != corev1.ClaimPending {
		t.Fatalf("claim = %+v, %v, want Pending before a pod uses it", claim.Status, err)
	}
	p.apply(t, namespace, `{apiVersion: v1, kind: Pod, metadata: {name: consumer}, spec: {
		containers: [{name: main, image: image}],
		volumes: [{name: data, persistentVolumeClaim: {claimName: data}},
			{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: late,
				accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}`)
	p.bound(t, namespace, "data")
	p.bound(t, namespace, "consumer-scratch")
}

// Without a provisioner, a claim is bound to a volume that was created by hand.
func TestClaimIsBoundToAnExistingVolume(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, "", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: by-hand}, spec: {
		storageClassName: by-hand, capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
		persistentVolumeReclaimPolicy: Retain, csi: {driver: example.com, volumeHandle: x}}}`)
	p.apply(t, namespace, claimManifest("storageClassName: by-hand,"))
	if volume := p.bound(t, namespace, "data"); volume.Name != "by-hand" {
		t.Errorf("bound to %s, want by-hand", volume.Name)
	}
}
