// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/testing/internal/fakeapi"
)

// takenOver are the fields of a builder that a cluster supports: the scheme is the scheme of the config, indexes are
// the indexes of a client's cache, and the cluster itself knows which kinds have a status subresource.
var takenOver = []string{"scheme", "indexes", "withStatusSubresource"}

// checkBuilder returns an error if the builder of the case sets anything that a cluster does not support.
func checkBuilder(scheme *runtime.Scheme, build func(*fake.ClientBuilder) *fake.ClientBuilder) error {
	if build == nil {
		return nil
	}
	builder := build(fake.NewClientBuilder().WithScheme(scheme))
	if builder == nil {
		return errors.New("WithClientBuilder returns nil")
	}
	var other []string
	for field, value := range reflect.ValueOf(builder).Elem().Fields() {
		if !value.IsZero() && !slices.Contains(takenOver, field.Name) {
			other = append(other, field.Name)
		}
	}
	if len(other) > 0 {
		return skipf("WithClientBuilder sets %s, and a cluster supports only indexes", strings.Join(other, ", "))
	}
	return nil
}

// listByIndex lists the objects that an index of a cache selects.
func (a *API) listByIndex(
	ctx context.Context, kind schema.GroupVersionKind, list client.ObjectList, options *client.ListOptions,
) error {
	live := &unstructured.UnstructuredList{}
	live.SetGroupVersionKind(kind)
	if err := a.real.List(ctx, live, &client.ListOptions{
		Namespace: options.Namespace, LabelSelector: options.LabelSelector,
	}); err != nil {
		return err
	}
	var objs []client.Object
	for i := range live.Items {
		shown := a.see(&live.Items[i], false)
		if shown == nil {
			continue
		}
		obj, err := a.typed(shown)
		if err != nil {
			return err
		}
		objs = append(objs, obj)
	}
	cache, _, err := fakeapi.New(fakeapi.Options{Scheme: a.scheme, Given: objs, Build: a.build})
	if err != nil {
		return err
	}
	return cache.List(ctx, list, options)
}

// typed converts an object to the Go type that the scheme has for its kind, if any. Index functions expect that type.
func (a *API) typed(u *unstructured.Unstructured) (client.Object, error) {
	if !a.scheme.Recognizes(u.GroupVersionKind()) {
		return u, nil
	}
	obj, err := a.scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return obj.(client.Object), runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
}
