// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
	"trueup.dev/testing/internal/fakeapi"
)

func (w *clientWrapper) create(ctx context.Context, c *call.Call, resource schema.GroupVersionResource) error {
	obj := c.Object
	options := *(&client.CreateOptions{}).ApplyOptions(call.Options[client.CreateOption](c)).AsCreateOptions()
	action := clientgotesting.NewCreateActionWithOptions(resource, obj.GetNamespace(), obj, options)
	recordAction(w, &w.CreateActions, action.DeepCopy().(objectAction))
	err := w.call(action, obj, func() error {
		// a reactor that has handled the call may have prevented the generation of the name
		w.generateName(obj)
		return c.Do(ctx, w.client)
	})
	if apierrs.IsAlreadyExists(err) {
		w.noteTaken(obj, err)
		w.explainNeverCreated(ctx, obj)
	}
	return err
}

func (w *clientWrapper) update(ctx context.Context, c *call.Call, resource schema.GroupVersionResource) error {
	options := *(&client.UpdateOptions{}).ApplyOptions(call.Options[client.UpdateOption](c)).AsUpdateOptions()
	action := clientgotesting.NewUpdateActionWithOptions(resource, c.Object.GetNamespace(), c.Object, options)
	recordAction(w, &w.UpdateActions, action.DeepCopy().(objectAction))
	return w.call(action, c.Object, func() error { return c.Do(ctx, w.client) })
}

func (w *clientWrapper) patch(ctx context.Context, c *call.Call, resource schema.GroupVersionResource) error {
	obj := c.Object
	data, err := c.Patch.Data(obj)
	if err != nil {
		return err
	}
	options := *(&client.PatchOptions{}).ApplyOptions(call.Options[client.PatchOption](c)).AsPatchOptions()
	action := clientgotesting.NewPatchActionWithOptions(
		resource, obj.GetNamespace(), obj.GetName(), c.Patch.Type(), data, options,
	)
	recordAction(w, &w.PatchActions, action.DeepCopy().(PatchAction))
	return w.call(action, obj, func() error {
		version := obj.GetResourceVersion()
		if err := c.Do(ctx, w.client); err != nil {
			return err
		}
		w.noteMoved(action, version, obj)
		return nil
	})
}

// apply applies a configuration to an object or to a subresource.
func (w *clientWrapper) apply(ctx context.Context, c *call.Call) error {
	action, err := newApplyAction(c.Config, c.Subresource)
	if err != nil {
		return err
	}
	if !c.OfSubresource() {
		if err := recordApply(w, &w.ApplyActions, action); err != nil {
			return err
		}
		return w.call(action, c.Config, func() error { return c.Do(ctx, w.client) })
	}
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(call.Options[client.SubResourceApplyOption](c))
	if body := options.SubResourceBody; body != nil {
		action.ApplyConfiguration = body
	}
	if isStatus(c) {
		err = recordApply(w, &w.StatusApplyActions, action)
	} else {
		err = recordApply(w, &w.SubResourceActions, action)
	}
	if err != nil {
		return err
	}
	return w.callSubresource(ctx, c, action, action.ApplyConfiguration)
}

func (w *clientWrapper) delete(ctx context.Context, c *call.Call, resource schema.GroupVersionResource) error {
	options := *(&client.DeleteOptions{}).ApplyOptions(call.Options[client.DeleteOption](c)).AsDeleteOptions()
	action := clientgotesting.NewDeleteActionWithOptions(
		resource, c.Object.GetNamespace(), c.Object.GetName(), options,
	)
	recordAction(w, &w.DeleteActions, action.DeepCopy().(DeleteAction))
	return w.call(action, nil, func() error { return c.Do(ctx, w.client) })
}

func (w *clientWrapper) deleteAllOf(ctx context.Context, c *call.Call, resource schema.GroupVersionResource) error {
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(call.Options[client.DeleteAllOfOption](c))
	action := clientgotesting.DeleteCollectionActionImpl{
		ListRestrictions: restrictions(&options.ListOptions),
		DeleteOptions:    *options.AsDeleteOptions(),
		ListOptions:      *options.AsListOptions(),
	}
	action.Verb, action.Resource, action.Namespace = "delete-collection", resource, options.Namespace
	recordAction(w, &w.DeleteCollectionActions, action.DeepCopy().(DeleteCollectionAction))
	return w.call(action, nil, func() error { return c.Do(ctx, w.client) })
}

// recordApply adds a copy of an action to one of the lists.
func recordApply[A Action](w *clientWrapper, list *[]A, action ApplyActionImpl) (err error) {
	if action.ApplyConfiguration, err = fakeapi.CopyApplyConfiguration(action.ApplyConfiguration); err != nil {
		return err
	}
	recordAction(w, list, any(action).(A))
	return nil
}
