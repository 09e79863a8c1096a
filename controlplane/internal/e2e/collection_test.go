// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// collectLimit is the timeout of deletions that take milliseconds, or a second after a CRD was installed. It is lower
// than the 30 s of kube-controller-manager.
const collectLimit = 10 * time.Second

var (
	crdResource = schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// installCRD installs a kind until the end of the test and waits until it is served.
func (p *process) installCRD(t *testing.T, group, singular, kind string) schema.GroupVersionResource {
	t.Helper()
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: singular + "s"}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": resource.GroupResource().String()},
		"spec": map[string]any{
			"group": group,
			"scope": "Namespaced",
			"names": map[string]any{"plural": resource.Resource, "singular": singular, "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	if _, err := p.dynamic.Resource(crdResource).Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.removeCRD(t, resource) })
	eventually(t, waitLimit, resource.Resource+" served", func(ctx context.Context) error {
		_, err := p.dynamic.Resource(resource).Namespace("default").List(ctx, metav1.ListOptions{})
		return err
	})
	return resource
}

// removeCRD returns when the kind no longer exists. It may not exist before either.
func (p *process) removeCRD(t *testing.T, resource schema.GroupVersionResource) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	name := resource.GroupResource().String()
	if err := p.dynamic.Resource(crdResource).Delete(ctx, name, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Error(err)
	}
	eventually(t, waitLimit, "CRD removed", func(context.Context) error {
		_, err := p.dynamic.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("CRD still exists"))
	})
}

// create creates an object with an optional owner.
func create(
	t *testing.T, client dynamic.ResourceInterface, apiVersion, kind, name string, owner *unstructured.Unstructured,
) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetName(name)
	if owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{
			{
				APIVersion: owner.GetAPIVersion(),
				Kind:       owner.GetKind(),
				Name:       owner.GetName(),
				UID:        owner.GetUID(),
				Controller: new(true),
			},
		})
	}
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// assertCollected deletes the owner and waits until the child is garbage-collected.
func assertCollected(t *testing.T, what string, owners, children dynamic.ResourceInterface) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := owners.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	took := eventually(t, collectLimit, what+": child collected", func(ctx context.Context) error {
		_, err := children.Get(ctx, "child", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("child still exists"))
	})
	t.Logf("%s: child collected %s after its owner's deletion", what, took.Round(time.Millisecond))
}

func TestOwnedObjectsAreCollected(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	configMaps := p.dynamic.Resource(configMapResource).Namespace(namespace)
	owner := create(t, configMaps, "v1", "ConfigMap", "owner", nil)
	create(t, configMaps, "v1", "ConfigMap", "child", owner)
	assertCollected(t, "built-in kinds", configMaps, configMaps)
}

func TestCustomResourcesAreCollectedRightAfterTheirCRDIsInstalled(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	const group = "collect.example.com"
	parents := p.dynamic.Resource(p.installCRD(t, group, "parent", "Parent")).Namespace(namespace)
	configMaps := p.dynamic.Resource(configMapResource).Namespace(namespace)

	owner := create(t, parents, group+"/v1", "Parent", "owner", nil)
	create(t, configMaps, "v1", "ConfigMap", "child", owner)
	assertCollected(t, "owner of a new kind", parents, configMaps)

	children := p.dynamic.Resource(p.installCRD(t, group, "child", "Child")).Namespace(namespace)
	owner = create(t, parents, group+"/v1", "Parent", "owner", nil)
	create(t, children, group+"/v1", "Child", "child", owner)
	assertCollected(t, "owner and child of new kinds", parents, children)
}

// An informer of a removed kind must not delay the kind when it is installed again.
func TestCustomResourcesAreCollectedAfterTheirCRDIsInstalledAgain(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	const group = "again.example.com"
	configMaps := p.dynamic.Resource(configMapResource).Namespace(namespace)
	resource := p.installCRD(t, group, "parent", "Parent")
	parents := p.dynamic.Resource(resource).Namespace(namespace)
	owner := create(t, parents, group+"/v1", "Parent", "owner", nil)
	create(t, configMaps, "v1", "ConfigMap", "child", owner)
	assertCollected(t, "first installation", parents, configMaps)

	p.removeCRD(t, resource)
	p.installCRD(t, group, "parent", "Parent")
	owner = create(t, parents, group+"/v1", "Parent", "owner", nil)
	create(t, configMaps, "v1", "ConfigMap", "child", owner)
	assertCollected(t, "second installation", parents, configMaps)
}

func TestForegroundDeletionWaitsForChildren(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	configMaps := p.dynamic.Resource(configMapResource).Namespace(p.namespace(t))
	owner := create(t, configMaps, "v1", "ConfigMap", "owner", nil)
	child := create(t, configMaps, "v1", "ConfigMap", "child", owner)
	child.SetFinalizers([]string{"example.com/hold"})
	references := child.GetOwnerReferences()
	references[0].BlockOwnerDeletion = new(true)
	child.SetOwnerReferences(references)
	child, err := configMaps.Update(t.Context(), child, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	foreground := metav1.DeletePropagationForeground
	if err := configMaps.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	eventually(t, collectLimit, "child being deleted", func(ctx context.Context) error {
		if child, err = configMaps.Get(ctx, "child", metav1.GetOptions{}); err != nil {
			return err
		}
		if child.GetDeletionTimestamp() == nil {
			return errors.New("child is not being deleted")
		}
		return nil
	})
	if _, err := configMaps.Get(t.Context(), "owner", metav1.GetOptions{}); err != nil {
		t.Errorf("owner while its child is held: %v, want it to wait", err)
	}
	if _, err := configMaps.Patch(
		t.Context(), "child", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, collectLimit, "owner removed", func(ctx context.Context) error {
		_, err := configMaps.Get(ctx, "owner", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("owner still exists"))
	})
}

func TestNamespaceIsEmptiedAndRemoved(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	const group = "namespaces.example.com"
	widgets := p.dynamic.Resource(p.installCRD(t, group, "widget", "Widget")).Namespace(namespace)
	create(t, widgets, group+"/v1", "Widget", "owner", nil)
	eventually(t, waitLimit, "default service account", func(ctx context.Context) error {
		_, err := p.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	_, err := p.client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: meta, Spec: template(nil, corev1.RestartPolicyAlways).Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	took := eventually(t, collectLimit, "namespace removed", func(ctx context.Context) error {
		found, err := p.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("status %+v", found.Status))
	})
	t.Logf("namespace with a pod and a custom resource removed after %s", took.Round(time.Millisecond))
	if _, err := widgets.Get(t.Context(), "owner", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("custom resource in it: %v, want not found", err)
	}
}
