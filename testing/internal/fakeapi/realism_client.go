// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"fmt"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/duck"
	rtime "trueup.dev/time"
)

// intercept returns a client that adds what a store cannot do: it knows neither the context of a call nor its options.
func (r *realism) intercept(c client.WithWatch, s *store) client.WithWatch {
	at := func(ctx context.Context) {
		now := rtime.RetrieveNow(ctx)
		r.now.Store(&now)
	}
	// the store changes typed objects of the caller in place, but copies of unstructured ones
	reread := func(obj client.Object, dryRun []string, err error) error {
		if _, ok := obj.(runtime.Unstructured); !ok || err != nil || slices.Contains(dryRun, metav1.DryRunAll) {
			return err
		}
		stored, err := r.stored(s, obj)
		if err != nil {
			// removed with its last finalizer
			return client.IgnoreNotFound(err)
		}
		gvk, fields := obj.GetObjectKind().GroupVersionKind(), obj.GetManagedFields()
		if err := duck.Convert(stored, obj); err != nil {
			return err
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		obj.SetManagedFields(fields)
		return nil
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			at(ctx)
			return reread(obj, (&client.CreateOptions{}).ApplyOptions(opts).DryRun, c.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return reread(obj, (&client.UpdateOptions{}).ApplyOptions(opts).DryRun, c.Update(ctx, obj, opts...))
		},
		Apply: func(
			ctx context.Context, c client.WithWatch, ac runtime.ApplyConfiguration, opts ...client.ApplyOption,
		) error {
			at(ctx)
			return c.Apply(ctx, ac, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			at(ctx)
			if err := r.checkUID(s, obj, (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
		DeleteAllOf: func(
			ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption,
		) error {
			at(ctx)
			return c.DeleteAllOf(ctx, obj, opts...)
		},
		SubResourceCreate: func(
			ctx context.Context, c client.Client, name string, obj, sub client.Object, opts ...client.SubResourceCreateOption,
		) error {
			at(ctx)
			return c.SubResource(name).Create(ctx, obj, sub, opts...)
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
			body := obj
			if options.SubResourceBody != nil {
				body = options.SubResourceBody
			}
			return reread(body, options.DryRun, c.SubResource(name).Update(ctx, obj, opts...))
		},
	})
}

// checkUID checks the UID precondition of a deletion, which the fake client ignores.
func (r *realism) checkUID(s *store, obj client.Object, preconditions *metav1.Preconditions) error {
	if preconditions == nil || preconditions.UID == nil {
		return nil
	}
	stored, err := r.stored(s, obj)
	if err != nil {
		return err
	}
	live, err := meta.Accessor(stored)
	if err != nil || live.GetUID() == *preconditions.UID {
		return err
	}
	return apierrs.NewConflict(schema.GroupResource{Resource: obj.GetObjectKind().GroupVersionKind().Kind}, obj.GetName(),
		fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s)", *preconditions.UID, live.GetUID(),
		))
}
