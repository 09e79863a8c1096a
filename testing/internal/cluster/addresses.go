// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	serviceKind = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	addressKind = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "IPAddress"}
)

// createReal creates an object. If the address of a Service is still allocated to a Service that no longer exists, it
// frees the address first: kube-apiserver repairs allocations from a cache, and may allocate the address of a deleted
// Service again, for a minute (repairip in k8s.io/kubernetes/pkg/registry/core/service/ipallocator/controller).
func createReal(
	ctx context.Context, c client.Client, obj *unstructured.Unstructured, opts ...client.CreateOption,
) error {
	sent := obj.DeepCopy()
	err := c.Create(ctx, obj, opts...)
	if obj.GroupVersionKind() != serviceKind || !apierrs.IsInvalid(err) ||
		!strings.Contains(err.Error(), "provided IP is already allocated") {
		return err
	}
	freed, freeErr := freeAddresses(ctx, c, sent)
	if freeErr != nil || !freed {
		return errors.Join(err, freeErr)
	}
	sent.DeepCopyInto(obj)
	return c.Create(ctx, obj, opts...)
}

// freeAddresses deletes the allocations of a Service's addresses to Services that no longer exist.
func freeAddresses(ctx context.Context, c client.Client, service *unstructured.Unstructured) (freed bool, err error) {
	addresses, _, _ := unstructured.NestedStringSlice(service.Object, "spec", "clusterIPs")
	if len(addresses) == 0 {
		address, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
		addresses = []string{address}
	}
	for _, address := range addresses {
		allocation := newUnstructured(addressKind, "", address)
		if err := c.Get(ctx, types.NamespacedName{Name: address}, allocation); err != nil {
			if apierrs.IsNotFound(err) {
				freed = true // by now
				continue
			}
			return false, err
		}
		parent, _, _ := unstructured.NestedStringMap(allocation.Object, "spec", "parentRef")
		owner := newUnstructured(serviceKind, parent["namespace"], parent["name"])
		if err := c.Get(ctx, client.ObjectKeyFromObject(owner), owner); !apierrs.IsNotFound(err) {
			return false, err
		}
		uid := allocation.GetUID()
		err := c.Delete(ctx, allocation, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		freed = true
	}
	return freed, nil
}
