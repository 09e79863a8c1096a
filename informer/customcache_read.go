// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// batch is the number of objects in one read.
	batch = 500
	// fewReads is the maximum number of objects to read one by one from the API server; more are read by a list.
	fewReads = 10
)

// Get reads an object from the store if the entry matches the last state that the API server sent, and from the API
// server otherwise. It waits until all objects are known.
func (c *CustomCache) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption,
) error {
	if err := c.readable(ctx, obj); err != nil {
		return err
	}
	if err := c.covers(key.Namespace); err != nil {
		return err
	}
	found, err := c.read(ctx, key)
	if err != nil {
		return err
	}
	into, from := reflect.ValueOf(obj), reflect.ValueOf(found)
	if into.Type() != from.Type() {
		return fmt.Errorf("this informer provides objects as %T, got %T", found, obj)
	}
	into.Elem().Set(from.Elem())
	return nil
}

// List reads objects as Get does. It selects by namespace, by labels, and by indexed fields that must equal a value.
func (c *CustomCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.readable(ctx, list); err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if err := c.covers(options.Namespace); err != nil && options.Namespace != "" {
		return err
	}
	if options.Continue != "" {
		return fmt.Errorf("this informer does not support paged lists of %s", c.gvk.GroupKind())
	}
	keys, err := c.keysFor(options)
	if err != nil {
		return err
	}
	found := []runtime.Object{}
	if err := c.each(ctx, keys, func(obj client.Object) {
		if options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			found = append(found, obj)
		}
	}); err != nil {
		return err
	}
	if options.Limit > 0 && int64(len(found)) > options.Limit {
		found = found[:options.Limit]
	}
	return meta.SetList(list, found)
}

func (c *CustomCache) keysFor(options *client.ListOptions) ([]client.ObjectKey, error) {
	selector := options.FieldSelector
	if selector == nil || selector.Empty() {
		return c.entries.in(options.Namespace), nil
	}
	for _, requirement := range selector.Requirements() {
		if requirement.Operator != "=" && requirement.Operator != "==" {
			return nil, fmt.Errorf(
				"this informer of %s supports only equality in field selectors, got %s", c.gvk.GroupKind(), selector,
			)
		}
	}
	keys, err := c.entries.matching(options.Namespace, selector)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", c.gvk.GroupKind(), err)
	}
	return keys, nil
}

// covers returns an error for a namespace that the informer does not watch. Without it, a read would report that
// existing objects do not exist.
func (c *CustomCache) covers(namespace string) error {
	if slices.ContainsFunc(c.feeds, func(f *feed) bool { return f.namespace == "" || f.namespace == namespace }) {
		return nil
	}
	return fmt.Errorf("this informer of %s does not watch namespace %q", c.gvk.GroupKind(), namespace)
}

// readable waits until objects can be read.
func (c *CustomCache) readable(ctx context.Context, obj runtime.Object) error {
	if err := c.is(obj); err != nil {
		return err
	}
	c.mu.Lock()
	started := c.started
	c.mu.Unlock()
	if !started {
		return &cache.ErrCacheNotStarted{}
	}
	if !c.WaitForCacheSync(ctx) {
		return c.notSynced(ctx)
	}
	return nil
}

// read returns an object that the caller may keep and change.
func (c *CustomCache) read(ctx context.Context, key client.ObjectKey) (client.Object, error) {
	known, ok := c.entries.get(key)
	if !ok {
		return nil, c.notFound(key)
	}
	if obj, ok := c.store.get(ctx, c.object, map[client.ObjectKey]entry{key: known})[key]; ok {
		return obj, nil
	}
	return c.readLive(ctx, key)
}

// each reads objects and skips those that no longer exist. It returns an error if some could not be read, after it has
// passed on the others.
func (c *CustomCache) each(ctx context.Context, keys []client.ObjectKey, do func(obj client.Object)) error {
	missing := map[client.ObjectKey]struct{}{}
	for keys := range slices.Chunk(keys, batch) {
		known := make(map[client.ObjectKey]entry, len(keys))
		for _, key := range keys {
			if entry, ok := c.entries.get(key); ok {
				known[key] = entry
				missing[key] = struct{}{}
			}
		}
		for key, obj := range c.store.get(ctx, c.object, known) {
			delete(missing, key)
			do(obj)
		}
	}
	if len(missing) > fewReads {
		return c.listLive(ctx, missing, do)
	}
	for key := range missing {
		obj, err := c.readLive(ctx, key)
		switch {
		case err == nil:
			do(obj)
		case !apierrs.IsNotFound(err):
			return err
		}
	}
	return nil
}

// readLive reads an object from the API server. An object that the informer does not select counts as not found.
func (c *CustomCache) readLive(ctx context.Context, key client.ObjectKey) (client.Object, error) {
	c.store.missed(ctx)
	if c.selection.labels == nil && c.selection.fields == nil {
		obj := c.empty()
		if err := c.live.Get(ctx, key, obj); err != nil {
			return nil, err
		}
		return c.receive(ctx, obj), nil
	}
	var found client.Object
	named := fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name)
	err := c.pages(ctx, key.Namespace, named, func(obj client.Object) { found = c.receive(ctx, obj) })
	if err == nil && found == nil {
		err = c.notFound(key)
	}
	return found, err
}

// listLive reads many objects from the API server.
func (c *CustomCache) listLive(
	ctx context.Context, wanted map[client.ObjectKey]struct{}, do func(obj client.Object),
) error {
	c.store.missed(ctx)
	var errs []error
	for _, f := range c.feeds {
		errs = append(errs, c.pages(ctx, f.namespace, nil, func(obj client.Object) {
			if _, ok := wanted[client.ObjectKeyFromObject(obj)]; ok {
				do(c.receive(ctx, obj))
			}
		}))
	}
	return errors.Join(errs...)
}

// pages lists the objects that the informer selects from the API server.
func (c *CustomCache) pages(
	ctx context.Context, namespace string, selector fields.Selector, do func(obj client.Object),
) error {
	options := &client.ListOptions{
		Namespace: namespace, LabelSelector: c.selection.labels, FieldSelector: c.selection.fields, Limit: batch,
	}
	switch {
	case selector != nil && c.selection.fields != nil:
		options.FieldSelector = fields.AndSelectors(selector, c.selection.fields)
	case selector != nil:
		options.FieldSelector = selector
	}
	for {
		list := c.newList()
		if err := c.live.List(ctx, list, options); err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			do(item.(client.Object))
			return nil
		}); err != nil {
			return err
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// receive gives an object of the API server the form of a stored one, and restores it if the store has lost it.
func (c *CustomCache) receive(ctx context.Context, obj client.Object) client.Object {
	_, _ = transform(obj)
	obj.GetObjectKind().SetGroupVersionKind(c.gvk)
	key := client.ObjectKeyFromObject(obj)
	if known, ok := c.entries.get(key); ok && known.is(obj) {
		c.entries.rehash(key, obj, c.store.set(ctx, key, obj))
	}
	return obj
}

func (c *CustomCache) notFound(key client.ObjectKey) error {
	return apierrs.NewNotFound(schema.GroupResource{Group: c.gvk.Group, Resource: c.gvk.Kind}, key.Name)
}

// listsOf returns a function that makes empty lists for objects of the same form as object.
func listsOf(
	gvk schema.GroupVersionKind, object client.Object, scheme *runtime.Scheme,
) (func() client.ObjectList, error) {
	gvk.Kind += "List"
	switch object.(type) {
	case runtime.Unstructured:
		return func() client.ObjectList {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)
			return list
		}, nil
	case *metav1.PartialObjectMetadata:
		return func() client.ObjectList {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk)
			return list
		}, nil
	}
	created, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	list, ok := created.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", created)
	}
	return func() client.ObjectList { return list.DeepCopyObject().(client.ObjectList) }, nil
}
