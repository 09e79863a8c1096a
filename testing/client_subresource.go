// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
	"trueup.dev/internal/objects/conditions"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/objectstatus"
)

func isStatus(c *call.Call) bool { return c.Subresource == "status" }

// callSubresource executes a call as call does. If the case does not execute calls for subresources, those that do not
// change the status return success without an effect.
func (w *clientWrapper) callSubresource(ctx context.Context, c *call.Call, action Action, into any) error {
	always := isStatus(c) && c.Verb != call.Get && c.Verb != call.Create
	return w.call(action, into, func() error {
		if !always && !w.executeSubResources {
			return nil
		}
		err := w.refuseConditions(ctx, c)
		if err == nil {
			err = c.Do(ctx, w.client)
		}
		if isStatus(c) && apierrs.IsNotFound(err) {
			w.explainMissingStatus(ctx, action)
		}
		return err
	})
}

// explainMissingStatus records why a status is not found although the object exists: the error is the same for both.
func (w *clientWrapper) explainMissingStatus(ctx context.Context, action Action) {
	resource, key := action.GetResource(), client.ObjectKey{Namespace: action.GetNamespace()}
	switch a := action.(type) {
	case namedAction:
		key.Name = a.GetName()
	case objectAction:
		if obj, ok := a.GetObject().(client.Object); ok {
			key.Name = obj.GetName()
		}
	}
	gvk := schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: resource.Resource}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	if err := w.client.Get(ctx, key, obj); err != nil {
		return
	}
	explanation := fmt.Sprintf("%s exists, but its status is not found: the kind has no status subresource. "+
		"StatusSubResourceTypes may lack it.", target(gvk.GroupKind(), "", key.Namespace, key.Name))
	w.explain(explanation)
}

// explainNeverCreated records why an object is created although the client has it: reconcilers take an object without a
// creation timestamp for one that does not exist.
func (w *clientWrapper) explainNeverCreated(ctx context.Context, obj client.Object) {
	gvk, err := w.client.GroupVersionKindFor(obj)
	if err != nil {
		return
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(gvk)
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), stored); err != nil {
		return
	}
	if created := stored.GetCreationTimestamp(); created.IsZero() {
		w.explain(fmt.Sprintf("%s is stored without a creationTimestamp: for reconcilers such an object does not exist, and "+
			"they create it. GivenObjects get a creationTimestamp; objects that a plain fake client stores have none.",
			target(gvk.GroupKind(), "", obj.GetNamespace(), obj.GetName())))
	}
}

// explain adds a reason of a failure to the log of the case.
func (w *clientWrapper) explain(explanation string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if !slices.Contains(w.explanations, explanation) {
		w.explanations = append(w.explanations, explanation)
	}
}

// doSubresource records writes of the status, and separately those of other subresources.
func (w *clientWrapper) doSubresource(
	ctx context.Context, c *call.Call, resource schema.GroupVersionResource,
) error {
	obj := c.Object
	switch c.Verb {
	case call.Get:
		action := clientgotesting.NewGetSubresourceAction(resource, obj.GetNamespace(), c.Subresource, obj.GetName())
		return w.callSubresource(ctx, c, action, c.Body)
	case call.Create:
		options := (&client.SubResourceCreateOptions{}).ApplyOptions(call.Options[client.SubResourceCreateOption](c))
		action := bodyAction{
			clientgotesting.NewCreateSubresourceActionWithOptions(
				resource, obj.GetName(), c.Subresource, obj.GetNamespace(), c.Body, *options.AsCreateOptions(),
			),
			obj.GetName(),
		}
		if !isStatus(c) {
			recordAction(w, &w.SubResourceActions, action.DeepCopy())
		}
		return w.callSubresource(ctx, c, action, c.Body)
	case call.Update:
		return w.updateSubresource(ctx, c, resource)
	case call.Patch:
		return w.patchSubresource(ctx, c, resource)
	}
	return fmt.Errorf("the verb %q of subresources is not recorded", c.Verb)
}

func (w *clientWrapper) updateSubresource(
	ctx context.Context, c *call.Call, resource schema.GroupVersionResource,
) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(call.Options[client.SubResourceUpdateOption](c))
	body := c.Written()
	var action objectAction = clientgotesting.NewUpdateSubresourceActionWithOptions(
		resource, c.Subresource, c.Object.GetNamespace(), body, *options.AsUpdateOptions())
	if options.SubResourceBody != nil {
		action = bodyAction{action, c.Object.GetName()}
	}
	if isStatus(c) {
		recordAction(w, &w.StatusUpdateActions, action.DeepCopy().(objectAction))
	} else {
		recordAction(w, &w.SubResourceActions, action.DeepCopy())
	}
	return w.callSubresource(ctx, c, action, body)
}

func (w *clientWrapper) patchSubresource(
	ctx context.Context, c *call.Call, resource schema.GroupVersionResource,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(call.Options[client.SubResourcePatchOption](c))
	body := c.Written()
	data, err := c.Patch.Data(body)
	if err != nil {
		return err
	}
	action := clientgotesting.NewPatchSubresourceActionWithOptions(resource, c.Object.GetNamespace(),
		c.Object.GetName(), c.Patch.Type(), data, *options.AsPatchOptions(), c.Subresource)
	if isStatus(c) {
		recordAction(w, &w.StatusPatchActions, action.DeepCopy().(PatchAction))
	} else {
		recordAction(w, &w.SubResourceActions, action.DeepCopy())
	}
	return w.callSubresource(ctx, c, action, body)
}

// refuseConditions returns the error of an API server for an update of the status with new or changed conditions that
// are invalid: it refuses the whole status. Fake clients store them. Conditions of given objects may be incomplete.
func (w *clientWrapper) refuseConditions(ctx context.Context, c *call.Call) error {
	if !isStatus(c) || c.Verb != call.Update {
		return nil
	}
	written, obj := conditionsOf(c.Written()), c.Object
	if len(written) == 0 {
		return nil
	}
	path := field.NewPath("status", "conditions")
	if len(conditions.Validate(written, nil, path)) == 0 {
		return nil
	}
	stored := empty.Like(obj)
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), stored); err != nil {
		return nil //nolint:nilerr // the update fails, too
	}
	errs := conditions.Validate(written, conditionsOf(stored), path)
	if len(errs) == 0 {
		return nil
	}
	gvk, err := w.client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	return apierrs.NewInvalid(gvk.GroupKind(), obj.GetName(), errs)
}

// conditionsOf returns the conditions in the status of an object of a Go type, if they are of the standard type.
func conditionsOf(obj client.Object) []metav1.Condition {
	if found := objectstatus.Of(obj).Conditions(obj); found != nil {
		return *found
	}
	return nil
}
