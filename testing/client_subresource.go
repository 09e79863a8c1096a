// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/conditions"
	"trueup.dev/internal/empty"
)

// Status implements [client.Client].
func (w *clientWrapper) Status() client.SubResourceWriter { return w.SubResource("status") }

// SubResource implements [client.Client].
func (w *clientWrapper) SubResource(subResource string) client.SubResourceClient {
	return &subResourceClient{wrapper: w, client: w.client.SubResource(subResource), name: subResource}
}

// subResourceClient records writes of the status, and separately those of other subresources.
type subResourceClient struct {
	wrapper *clientWrapper
	client  client.SubResourceClient
	name    string
}

func (c *subResourceClient) isStatus() bool { return c.name == "status" }

// call executes a call as the wrapper does. If always is false and the case does not execute writes to subresources, it
// returns success without an effect.
func (c *subResourceClient) call(
	ctx context.Context, action Action, into any, always bool, execute func() error,
) error {
	return c.wrapper.call(action, into, func() error {
		if !always && !c.wrapper.executeSubResources {
			return nil
		}
		err := execute()
		if c.isStatus() && apierrs.IsNotFound(err) {
			c.wrapper.explainMissingStatus(ctx, action)
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

// Get implements [client.SubResourceReader].
func (c *subResourceClient) Get(
	ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceGetOption,
) error {
	resource, err := c.wrapper.resourceFor(obj)
	if err != nil {
		return err
	}
	action := clientgotesting.NewGetSubresourceAction(resource, obj.GetNamespace(), c.name, obj.GetName())
	return c.call(ctx, action, subResource, false, func() error { return c.client.Get(ctx, obj, subResource, opts...) })
}

// Create implements [client.SubResourceWriter].
func (c *subResourceClient) Create(
	ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceCreateOption,
) error {
	resource, err := c.wrapper.resourceFor(obj)
	if err != nil {
		return err
	}
	options := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	action := bodyAction{
		clientgotesting.NewCreateSubresourceActionWithOptions(
			resource, obj.GetName(), c.name, obj.GetNamespace(), subResource, *options.AsCreateOptions(),
		),
		obj.GetName(),
	}
	if !c.isStatus() {
		recordAction(c.wrapper, &c.wrapper.SubResourceActions, action.DeepCopy())
	}
	return c.call(ctx, action, subResource, false, func() error { return c.client.Create(ctx, obj, subResource, opts...) })
}

// Update implements [client.SubResourceWriter].
func (c *subResourceClient) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	resource, err := c.wrapper.resourceFor(obj)
	if err != nil {
		return err
	}
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	body := bodyOr(options.SubResourceBody, obj)
	var action objectAction = clientgotesting.NewUpdateSubresourceActionWithOptions(
		resource, c.name, obj.GetNamespace(), body, *options.AsUpdateOptions())
	if options.SubResourceBody != nil {
		action = bodyAction{action, obj.GetName()}
	}
	if c.isStatus() {
		recordAction(c.wrapper, &c.wrapper.StatusUpdateActions, action.DeepCopy().(objectAction))
	} else {
		recordAction(c.wrapper, &c.wrapper.SubResourceActions, action.DeepCopy())
	}
	return c.call(ctx, action, body, c.isStatus(), func() error {
		if err := c.refuseConditions(ctx, obj, body); err != nil {
			return err
		}
		return c.client.Update(ctx, obj, opts...)
	})
}

// refuseConditions returns the error of an API server for new or changed conditions that are invalid: it refuses the
// whole status. Fake clients store them. Conditions of given objects may be incomplete.
func (c *subResourceClient) refuseConditions(ctx context.Context, obj, body client.Object) error {
	written := conditionsOf(body)
	if !c.isStatus() || len(written) == 0 {
		return nil
	}
	path := field.NewPath("status", "conditions")
	if len(conditions.Validate(written, nil, path)) == 0 {
		return nil
	}
	stored := empty.Like(obj)
	if err := c.wrapper.client.Get(ctx, client.ObjectKeyFromObject(obj), stored); err != nil {
		return nil //nolint:nilerr // the update fails, too
	}
	errs := conditions.Validate(written, conditionsOf(stored), path)
	if len(errs) == 0 {
		return nil
	}
	gvk, err := c.wrapper.client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	return apierrs.NewInvalid(gvk.GroupKind(), obj.GetName(), errs)
}

// conditionsOf returns the conditions in the status of an object of a Go type, if they are of the standard type.
func conditionsOf(obj client.Object) []metav1.Condition {
	value := reflect.Indirect(reflect.ValueOf(obj))
	for _, name := range []string{"Status", "Conditions"} {
		if value.Kind() != reflect.Struct {
			return nil
		}
		found, ok := value.Type().FieldByName(name)
		if !ok {
			return nil
		}
		next, err := value.FieldByIndexErr(found.Index)
		if err != nil {
			return nil
		}
		value = reflect.Indirect(next)
	}
	if !value.IsValid() || !value.CanInterface() {
		return nil
	}
	list, _ := value.Interface().([]metav1.Condition)
	return list
}

// Patch implements [client.SubResourceWriter].
func (c *subResourceClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	resource, err := c.wrapper.resourceFor(obj)
	if err != nil {
		return err
	}
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := bodyOr(options.SubResourceBody, obj)
	data, err := patch.Data(body)
	if err != nil {
		return err
	}
	action := clientgotesting.NewPatchSubresourceActionWithOptions(
		resource, obj.GetNamespace(), obj.GetName(), patch.Type(), data, *options.AsPatchOptions(), c.name)
	if c.isStatus() {
		recordAction(c.wrapper, &c.wrapper.StatusPatchActions, action.DeepCopy().(PatchAction))
	} else {
		recordAction(c.wrapper, &c.wrapper.SubResourceActions, action.DeepCopy())
	}
	return c.call(ctx, action, body, c.isStatus(), func() error { return c.client.Patch(ctx, obj, patch, opts...) })
}

// Apply implements [client.SubResourceWriter].
func (c *subResourceClient) Apply(
	ctx context.Context, ac runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	action, err := newApplyAction(ac, c.name)
	if err != nil {
		return err
	}
	if body := (&client.SubResourceApplyOptions{}).ApplyOpts(opts).SubResourceBody; body != nil {
		action.ApplyConfiguration = body
	}
	if c.isStatus() {
		err = recordApply(c.wrapper, &c.wrapper.StatusApplyActions, action)
	} else {
		err = recordApply(c.wrapper, &c.wrapper.SubResourceActions, action)
	}
	if err != nil {
		return err
	}
	return c.call(ctx, action, action.ApplyConfiguration, c.isStatus(), func() error {
		return c.client.Apply(ctx, ac, opts...)
	})
}

// bodyOr returns the body that the caller has passed for a subresource, or the object if there is none.
func bodyOr(body, obj client.Object) client.Object {
	if body != nil {
		return body
	}
	return obj
}
