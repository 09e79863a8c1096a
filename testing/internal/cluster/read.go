// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"reflect"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// caseReader is the APIReader of a case on a cluster.
type caseReader struct{ *API }

// Get implements [client.Reader].
func (r *caseReader) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return r.get(ctx, true, key, obj, opts)
}

// List implements [client.Reader].
func (r *caseReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.list(ctx, true, list, opts)
}

// get reads an object of the case.
func (a *API) get(
	ctx context.Context, reader bool, key client.ObjectKey, obj client.Object, opts []client.GetOption,
) error {
	kind, err := apiutil.GVKForObject(obj, a.scheme)
	if err != nil {
		return err
	}
	live := newUnstructured(kind, key.Namespace, key.Name)
	if err := a.real.Get(ctx, key, live, opts...); err != nil {
		return err
	}
	shown := a.see(live, reader)
	if shown == nil {
		return a.notFound(kind, key.Name)
	}
	return into(shown.Object, obj)
}

// notFound is the error for objects that are hidden from the case.
func (a *API) notFound(kind schema.GroupVersionKind, name string) error {
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	return apierrs.NewNotFound(mapping.Resource.GroupResource(), name)
}

// list lists the objects of the case.
func (a *API) list(ctx context.Context, reader bool, list client.ObjectList, opts []client.ListOption) error {
	kind, err := apiutil.GVKForObject(list, a.scheme)
	if err != nil {
		return err
	}
	live := &unstructured.UnstructuredList{}
	live.SetGroupVersionKind(kind)
	if !strings.HasSuffix(kind.Kind, "List") {
		// the kind of a list of metadata may be the kind of its items
		live.SetKind(kind.Kind + "List")
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	err = a.real.List(ctx, live, options)
	if apierrs.IsBadRequest(err) && options.FieldSelector != nil && a.build != nil && !reader {
		// servers select by few fields, caches by every field they have an index for
		return a.listByIndex(ctx, live.GroupVersionKind(), list, options)
	} else if err != nil {
		return err
	}
	items := []any{}
	for i := range live.Items {
		if shown := a.see(&live.Items[i], reader); shown != nil {
			if isTyped(list) {
				shown.SetGroupVersionKind(schema.GroupVersionKind{})
			}
			items = append(items, shown.Object)
		}
	}
	content := map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "items": items}
	if next := live.GetContinue(); next != "" {
		content["metadata"] = map[string]any{"continue": next}
	}
	return into(content, list)
}

// isTyped reports whether the Go type of an object determines its kind. Clients leave the kind of such objects empty.
func isTyped(obj runtime.Object) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return false
	}
	return true
}

// into sets an object or a list to content, which must not be used afterwards.
func into(content map[string]any, obj runtime.Object) error {
	if u, ok := obj.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return nil
	}
	read := reflect.New(reflect.TypeOf(obj).Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, read.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(obj).Elem().Set(read.Elem())
	if isTyped(obj) {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return nil
}
