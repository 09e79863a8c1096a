// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespaces are kept for the next case and the next run. A cluster needs seconds to delete a namespace. Until then its
// name cannot be used, and objects in a new namespace with that name may be deleted with the old one.

// madeByLabel marks the namespaces that cases have created, except those that the current case was given.
const madeByLabel = "trueup.dev/made-by"

var (
	namespaceKind      = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	serviceAccountKind = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
)

func isNamespace(id objectID) bool {
	return id.group == namespaceKind.Group && id.kind == namespaceKind.Kind
}

// ensureNamespace creates a namespace if it does not exist.
func (c *Cluster) ensureNamespace(ctx context.Context, name string) error {
	if c.host.namespaces[name] {
		return nil
	}
	err := await(ctx, func() (bool, error) {
		found := newUnstructured(namespaceKind, "", name)
		err := c.client.Get(ctx, client.ObjectKeyFromObject(found), found)
		switch {
		case apierrs.IsNotFound(err):
			found.SetLabels(map[string]string{madeByLabel: manager})
			err := c.client.Create(ctx, found)
			return false, client.IgnoreAlreadyExists(err)
		case err != nil:
			return false, err
		case found.GetDeletionTimestamp() != nil:
			return false, nil
		case !c.isOurs(found):
			return true, nil
		}
		// an interrupted run has left objects in it
		if err := c.sweepNamespace(ctx, name); err != nil {
			return false, err
		}
		return true, c.equipNamespace(ctx, name)
	})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

// isOurs reports whether a case has created a namespace.
func (c *Cluster) isOurs(namespace *unstructured.Unstructured) bool {
	return c.host.namespaces[namespace.GetName()] || namespace.GetLabels()[madeByLabel] == manager
}

// equipNamespace creates the default service account in a new namespace, without which pods are refused. A controller
// may not run, or may create it too late.
func (c *Cluster) equipNamespace(ctx context.Context, name string) error {
	c.host.namespaces[name] = true
	return client.IgnoreAlreadyExists(c.client.Create(ctx, newUnstructured(serviceAccountKind, name, "default")))
}

// sweepNamespace removes all objects from a namespace. Controllers recreate the objects that each namespace has.
func (c *Cluster) sweepNamespace(ctx context.Context, name string) error {
	resources, err := discovery.ServerPreferredNamespacedResources(c.discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return err
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, resources) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			found := &unstructured.UnstructuredList{}
			found.SetGroupVersionKind(version.WithKind(resource.Kind + "List"))
			if err := c.client.List(ctx, found, client.InNamespace(name)); err != nil {
				return fmt.Errorf("delete the %s left in it: %w", resource.Name, err)
			}
			for i := range found.Items {
				if err := removeFrom(ctx, c.client, &found.Items[i]); err != nil {
					return fmt.Errorf("delete the %s left in it: %w", resource.Name, err)
				}
			}
		}
	}
	return nil
}

// takeNamespace sets live to the existing namespace. If a case created it, it is first changed to what the current case
// sent.
func (c *Cluster) takeNamespace(ctx context.Context, sent, live *unstructured.Unstructured) (ours bool, err error) {
	err = await(ctx, func() (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(sent), live); err != nil {
			return false, err
		}
		if ours = c.isOurs(live); !ours {
			return true, nil
		}
		if live.GetDeletionTimestamp() != nil {
			return false, nil
		}
		metadata := live.DeepCopy()
		metadata.SetLabels(sent.GetLabels())
		metadata.SetAnnotations(sent.GetAnnotations())
		metadata.SetFinalizers(sent.GetFinalizers())
		if err := c.client.Update(ctx, metadata); err != nil {
			return false, ignoreConflict(err)
		}
		metadata.DeepCopyInto(live)
		return true, nil
	})
	return ours, err
}

// leaveNamespace prepares a namespace of a case for other cases. If the case has deleted it, leaveNamespace returns
// when it no longer exists.
func (c *Cluster) leaveNamespace(ctx context.Context, name string) error {
	return await(ctx, func() (bool, error) {
		left := newUnstructured(namespaceKind, "", name)
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(left), left); apierrs.IsNotFound(err) {
			delete(c.host.namespaces, name)
			return true, nil
		} else if err != nil {
			return false, err
		}
		isDeleted := left.GetDeletionTimestamp() != nil
		if isDeleted && len(left.GetFinalizers()) == 0 {
			return false, nil
		}
		left.SetLabels(map[string]string{madeByLabel: manager})
		left.SetAnnotations(nil)
		left.SetFinalizers(nil)
		err := c.client.Update(ctx, left)
		return err == nil && !isDeleted, client.IgnoreNotFound(ignoreConflict(err))
	})
}

func ignoreConflict(err error) error {
	if apierrs.IsConflict(err) {
		return nil
	}
	return err
}
