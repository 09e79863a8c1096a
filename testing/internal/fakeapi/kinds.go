// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// routeKinds returns a client that executes calls for kinds that are not in the scheme with another client.
//
// The fake client adds such kinds to its scheme. The scheme belongs to the test, and cases that run in parallel use it,
// so it must not be changed. The other client has a copy of the scheme, which is only made when it is needed because
// that is expensive.
func routeKinds(known client.WithWatch, others func() client.WithWatch) client.WithWatch {
	scheme := known.Scheme()
	route := func(obj runtime.Object) client.WithWatch {
		switch obj.(type) {
		case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
			gvk := obj.GetObjectKind().GroupVersionKind()
			if _, ok := obj.(client.ObjectList); ok {
				gvk.Kind = strings.TrimSuffix(gvk.Kind, "List") + "List"
			}
			if !scheme.Recognizes(gvk) {
				return others()
			}
		}
		return known
	}
	routeApply := func(ac runtime.ApplyConfiguration) client.WithWatch {
		call, err := newApplyCall(ac, "")
		if err != nil || scheme.Recognizes(call.applied.GroupVersionKind()) {
			return known
		}
		return others()
	}
	return interceptor.NewClient(known, interceptor.Funcs{
		Get: func(
			ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			return route(obj).Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return route(list).List(ctx, list, opts...)
		},
		Watch: func(
			ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption,
		) (watch.Interface, error) {
			return route(list).Watch(ctx, list, opts...)
		},
		Create: func(ctx context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return route(obj).Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, _ client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return route(obj).Update(ctx, obj, opts...)
		},
		Patch: func(
			ctx context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption,
		) error {
			return route(obj).Patch(ctx, obj, patch, opts...)
		},
		Apply: func(
			ctx context.Context, _ client.WithWatch, ac runtime.ApplyConfiguration, opts ...client.ApplyOption,
		) error {
			return routeApply(ac).Apply(ctx, ac, opts...)
		},
		Delete: func(ctx context.Context, _ client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return route(obj).Delete(ctx, obj, opts...)
		},
		DeleteAllOf: func(
			ctx context.Context, _ client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption,
		) error {
			return route(obj).DeleteAllOf(ctx, obj, opts...)
		},
		SubResourceGet: func(
			ctx context.Context, _ client.Client, name string, obj, sub client.Object, opts ...client.SubResourceGetOption,
		) error {
			return route(obj).SubResource(name).Get(ctx, obj, sub, opts...)
		},
		SubResourceCreate: func(
			ctx context.Context, _ client.Client, name string, obj, sub client.Object, opts ...client.SubResourceCreateOption,
		) error {
			return route(obj).SubResource(name).Create(ctx, obj, sub, opts...)
		},
		SubResourceUpdate: func(
			ctx context.Context, _ client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			return route(obj).SubResource(name).Update(ctx, obj, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, _ client.Client, name string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return route(obj).SubResource(name).Patch(ctx, obj, patch, opts...)
		},
		SubResourceApply: func(
			ctx context.Context, _ client.Client, name string, ac runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption,
		) error {
			return routeApply(ac).SubResource(name).Apply(ctx, ac, opts...)
		},
	})
}

// copyScheme returns a scheme with the same kinds. It does not copy conversions and defaults, which a fake client does
// not use.
func copyScheme(scheme *runtime.Scheme) *runtime.Scheme {
	copied := runtime.NewScheme()
	for gvk, goType := range scheme.AllKnownTypes() {
		copied.AddKnownTypeWithName(gvk, reflect.New(goType).Interface().(runtime.Object))
	}
	return copied
}

// unstructuredKinds is a scheme that creates unstructured objects and lists of kinds that it does not have.
type unstructuredKinds struct{ *runtime.Scheme }

// New implements [runtime.ObjectCreater].
func (k unstructuredKinds) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	switch {
	case k.Recognizes(gvk):
		return k.Scheme.New(gvk)
	case strings.HasSuffix(gvk.Kind, "List"):
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	default:
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gvk)
		return obj, nil
	}
}
