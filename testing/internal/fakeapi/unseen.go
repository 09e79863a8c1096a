// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"reflect"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// unseenObjects are objects of an API whose current version the cache of a client does not have. The cache has them
// after their next change.
type unseenObjects struct {
	scheme   *runtime.Scheme
	versions map[unseenObject]string
}

type unseenObject struct {
	kind schema.GroupKind
	key  client.ObjectKey
}

// Hide returns a client that does not read these objects of its API until they change.
func Hide(scheme *runtime.Scheme, from client.WithWatch, objs []client.Object) (client.WithWatch, error) {
	if len(objs) == 0 {
		return from, nil
	}
	unseen := unseenObjects{scheme: scheme, versions: make(map[unseenObject]string, len(objs))}
	for _, obj := range objs {
		stored := obj.DeepCopyObject().(client.Object)
		if err := from.Get(context.Background(), client.ObjectKeyFromObject(obj), stored); err != nil {
			return nil, err
		}
		unseen.versions[unseen.identify(obj)] = stored.GetResourceVersion()
	}
	return interceptor.NewClient(from, interceptor.Funcs{Get: unseen.get, List: unseen.list}), nil
}

func (u unseenObjects) identify(obj client.Object) unseenObject {
	gvk, err := apiutil.GVKForObject(obj, u.scheme)
	if err != nil {
		gvk = obj.GetObjectKind().GroupVersionKind()
	}
	return unseenObject{kind: gvk.GroupKind(), key: client.ObjectKeyFromObject(obj)}
}

func (u unseenObjects) has(obj client.Object) bool {
	version, ok := u.versions[u.identify(obj)]
	return ok && version == obj.GetResourceVersion()
}

func (u unseenObjects) get(
	ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	before := obj.DeepCopyObject()
	if err := c.Get(ctx, key, obj, opts...); err != nil || !u.has(obj) {
		return err
	}
	kind := u.identify(obj).kind
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(before).Elem())
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return apierrs.NewNotFound(schema.GroupResource{Group: plural.Group, Resource: plural.Resource}, key.Name)
}

func (u unseenObjects) list(
	ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption,
) error {
	if err := c.List(ctx, list, opts...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	return meta.SetList(list, slices.DeleteFunc(items, func(item runtime.Object) bool {
		obj, ok := item.(client.Object)
		return ok && u.has(obj)
	}))
}
