// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/testing/internal/fakeapi"
)

// Create implements [client.Writer].
func (w *clientWrapper) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	resource, err := w.resourceFor(obj)
	if err != nil {
		return err
	}
	options := *(&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	action := clientgotesting.NewCreateActionWithOptions(resource, obj.GetNamespace(), obj, options)
	recordAction(w, &w.CreateActions, action.DeepCopy().(objectAction))
	err = w.call(action, obj, func() error {
		// a reactor that has handled the call may have prevented the generation of the name
		w.generateName(obj)
		return w.client.Create(ctx, obj, opts...)
	})
	if apierrs.IsAlreadyExists(err) {
		w.noteTaken(obj, err)
		w.explainNeverCreated(ctx, obj)
	}
	return err
}

// Update implements [client.Writer].
func (w *clientWrapper) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	resource, err := w.resourceFor(obj)
	if err != nil {
		return err
	}
	options := *(&client.UpdateOptions{}).ApplyOptions(opts).AsUpdateOptions()
	action := clientgotesting.NewUpdateActionWithOptions(resource, obj.GetNamespace(), obj, options)
	recordAction(w, &w.UpdateActions, action.DeepCopy().(objectAction))
	return w.call(action, obj, func() error { return w.client.Update(ctx, obj, opts...) })
}

// Patch implements [client.Writer].
func (w *clientWrapper) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	resource, err := w.resourceFor(obj)
	if err != nil {
		return err
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	options := *(&client.PatchOptions{}).ApplyOptions(opts).AsPatchOptions()
	action := clientgotesting.NewPatchActionWithOptions(
		resource, obj.GetNamespace(), obj.GetName(), patch.Type(), data, options,
	)
	recordAction(w, &w.PatchActions, action.DeepCopy().(PatchAction))
	return w.call(action, obj, func() error {
		version := obj.GetResourceVersion()
		if err := w.client.Patch(ctx, obj, patch, opts...); err != nil {
			return err
		}
		w.noteMoved(action, version, obj)
		return nil
	})
}

// Apply implements [client.Writer].
func (w *clientWrapper) Apply(ctx context.Context, ac runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	action, err := newApplyAction(ac, "")
	if err != nil {
		return err
	}
	if err := recordApply(w, &w.ApplyActions, action); err != nil {
		return err
	}
	return w.call(action, ac, func() error { return w.client.Apply(ctx, ac, opts...) })
}

// Delete implements [client.Writer].
func (w *clientWrapper) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	resource, err := w.resourceFor(obj)
	if err != nil {
		return err
	}
	options := *(&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions()
	action := clientgotesting.NewDeleteActionWithOptions(resource, obj.GetNamespace(), obj.GetName(), options)
	recordAction(w, &w.DeleteActions, action.DeepCopy().(DeleteAction))
	return w.call(action, nil, func() error { return w.client.Delete(ctx, obj, opts...) })
}

// DeleteAllOf implements [client.Writer].
func (w *clientWrapper) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	resource, err := w.resourceFor(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	action := clientgotesting.DeleteCollectionActionImpl{
		ListRestrictions: restrictions(&options.ListOptions),
		DeleteOptions:    *options.AsDeleteOptions(),
		ListOptions:      *options.AsListOptions(),
	}
	action.Verb, action.Resource, action.Namespace = "delete-collection", resource, options.Namespace
	recordAction(w, &w.DeleteCollectionActions, action.DeepCopy().(DeleteCollectionAction))
	return w.call(action, nil, func() error { return w.client.DeleteAllOf(ctx, obj, opts...) })
}

// recordApply adds a copy of an action to one of the lists.
func recordApply[A Action](w *clientWrapper, list *[]A, action ApplyActionImpl) (err error) {
	if action.ApplyConfiguration, err = fakeapi.CopyApplyConfiguration(action.ApplyConfiguration); err != nil {
		return err
	}
	recordAction(w, list, any(action).(A))
	return nil
}
