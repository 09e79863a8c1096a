// SPDX-License-Identifier: Apache-2.0

package duck

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch watches as the wrapped client does. It panics if the wrapped client cannot watch. The events for a duck typed
// list carry objects of the type of its items.
func (c *duckClient) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	wrapped, ok := c.wrapped.(client.WithWatch)
	if !ok {
		panic("unable to call Watch with wrapped client that does not implement client.WithWatch")
	}
	if !IsDuck(list, c.Scheme()) {
		return wrapped.Watch(ctx, list, opts...)
	}
	u := &unstructured.UnstructuredList{}
	if err := convert(list, u); err != nil {
		return nil, err
	}
	w, err := wrapped.Watch(ctx, u, opts...)
	if err != nil {
		return nil, err
	}
	item, ok := itemType(list)
	if !ok {
		return w, nil
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		return convertEvent(event, item), true
	}), nil
}

// convertEvent returns the event with its object converted to the type.
func convertEvent(event watch.Event, to reflect.Type) watch.Event {
	if event.Type == watch.Error {
		// the object is a Status, not a watched object
		return event
	}
	obj := reflect.New(to).Interface().(runtime.Object)
	if err := Convert(event.Object, obj); err != nil {
		return watch.Event{Type: watch.Error, Object: &apierrors.NewInternalError(err).ErrStatus}
	}
	event.Object = obj
	return event
}

// itemType returns the struct type of the items in a list. It returns false if a pointer to that type is not an object.
func itemType(list client.ObjectList) (reflect.Type, bool) {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, false
	}
	item := reflect.TypeOf(items).Elem().Elem()
	if item.Kind() == reflect.Pointer {
		item = item.Elem()
	}
	if !reflect.PointerTo(item).Implements(reflect.TypeFor[runtime.Object]()) {
		return nil, false
	}
	return item, true
}
