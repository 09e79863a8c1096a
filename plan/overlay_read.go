// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
)

// plainKind returns the kind of an object, or of the items of a list, without reading its definition.
func (o *overlay) plainKind(obj runtime.Object) (schema.GroupVersionKind, error) {
	gvk, err := o.cluster.GroupVersionKindFor(obj)
	if err == nil && meta.IsListType(obj) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	return gvk, err
}

func (o *overlay) get(ctx context.Context, c *call.Call) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	gvk, err := o.plainKind(c.Object)
	if err != nil {
		return err
	}
	if !o.has(objectID{gvk, c.Key}) {
		return c.Do(ctx, o.cluster)
	}
	return o.server.Client(o.manager).Get(ctx, c.Key, c.Object)
}

func (o *overlay) getSubresource(ctx context.Context, c *call.Call) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	gvk, err := o.plainKind(c.Object)
	if err != nil {
		return err
	}
	if o.has(objectID{gvk, client.ObjectKeyFromObject(c.Object)}) {
		return c.Do(ctx, o.server.Client(o.manager))
	}
	return c.Do(ctx, o.cluster)
}

// list lists the objects of the cluster that the overlay does not have, and the objects of the overlay.
func (o *overlay) list(
	ctx context.Context, indexes *indexes, list client.ObjectList, opts ...client.ListOption,
) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	gvk, err := o.plainKind(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	selects := indexes.selector(gvk, options)
	var items []runtime.Object
	if selects == nil {
		if err := o.cluster.List(ctx, list, opts...); err != nil {
			return err
		}
		if items, err = meta.ExtractList(list); err != nil {
			return err
		}
	} else if items, err = indexes.find(ctx, o.cluster, gvk, list, options); err != nil {
		return err
	}
	found := len(items)
	items = slices.DeleteFunc(items, func(item runtime.Object) bool {
		obj, ok := item.(client.Object)
		return ok && o.has(objectID{gvk, client.ObjectKeyFromObject(obj)})
	})
	if list.GetContinue() == "" {
		written, err := o.written(ctx, gvk, list, options, selects)
		if err != nil {
			return err
		}
		items = append(items, written...)
	}
	if selects == nil && found == len(items) && !o.hasAny(gvk) {
		return nil // as it was answered
	}
	if items == nil {
		items = []runtime.Object{}
	}
	slices.SortStableFunc(items, func(a, b runtime.Object) int {
		x, y := a.(client.Object), b.(client.Object)
		if c := strings.Compare(x.GetNamespace(), y.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(x.GetName(), y.GetName())
	})
	return meta.SetList(list, items)
}

func (o *overlay) hasAny(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(o.order, func(id objectID) bool { return id.kind == gvk })
}

// written returns the selected objects of the overlay, in the form of the items of a list.
func (o *overlay) written(
	ctx context.Context, gvk schema.GroupVersionKind, list client.ObjectList, options *client.ListOptions,
	selects func(client.Object) bool,
) ([]runtime.Object, error) {
	if !o.hasAny(gvk) {
		return nil, nil
	}
	mine := reflect.New(reflect.TypeOf(list).Elem()).Interface().(client.ObjectList)
	mine.GetObjectKind().SetGroupVersionKind(list.GetObjectKind().GroupVersionKind())
	if _, generic := list.(*metav1.PartialObjectMetadataList); generic {
		mine.GetObjectKind().SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	}
	if _, generic := list.(*unstructured.UnstructuredList); generic {
		mine.GetObjectKind().SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	}
	narrowed := &client.ListOptions{Namespace: options.Namespace, LabelSelector: options.LabelSelector}
	if selects == nil {
		narrowed.FieldSelector = options.FieldSelector
	}
	if err := o.server.Client(o.manager).List(ctx, mine, narrowed); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(mine)
	return slices.DeleteFunc(items, func(item runtime.Object) bool {
		obj := item.(client.Object)
		return !o.has(objectID{gvk, client.ObjectKeyFromObject(obj)}) || selects != nil && !selects(obj)
	}), err
}
