// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Removed is the value that an annotation has in a cache whose transformation has removed the value.
const Removed = ""

// restore gives an object that is about to be updated the annotation of kubectl that the API server has, if a
// transformation has removed its value from the cache. Otherwise the update would remove it from the API server, and
// the next "kubectl apply" could not tell which fields to delete.
func (c *Cluster) restore(ctx context.Context, obj client.Object) error {
	const key = corev1.LastAppliedConfigAnnotation
	if value, ok := obj.GetAnnotations()[key]; !ok || value != Removed {
		return nil
	}
	gvk, err := c.client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
		return client.IgnoreNotFound(err) // the update returns NotFound
	}
	annotations := maps.Clone(obj.GetAnnotations()) // the cache may share them
	if value, ok := live.GetAnnotations()[key]; ok {
		annotations[key] = value
	} else {
		delete(annotations, key)
	}
	obj.SetAnnotations(annotations)
	return nil
}
