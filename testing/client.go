// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph/rbac"
	"trueup.dev/internal/call"
	"trueup.dev/internal/objects/conditions"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/objects/objectstatus"
	"trueup.dev/testing/internal/fakeapi"
)

// TestClient is the client of an [ExpectConfig]. It records all writes. Its reactors observe, change, answer or fail
// calls before they are executed.
//
// Reactors are called in their order until one returns that it has handled the call:
//
//   - An error fails the call.
//   - An object other than the object of the action is the answer. It is copied into the object that the caller has
//     passed, also from another Go type of the same kind, and the call is not executed. A Status answers a call without
//     changing the object of the caller; a Status of a failure fails the call.
//   - Otherwise the call is executed with the object of the action, which is the object of the caller. A reactor can
//     change that object, for example to simulate admission or defaulting.
//
// Writes are recorded before the reactors are called, as the caller has passed them, even if they fail.
//
// Objects that are created with a generateName get a predictable name: the client counts such creates, and the names
// end in 001, 002 and so on. As the API server does, the client cuts a prefix of more than 58 bytes. Reactors added
// with AddReactor receive objects with that name, prepended reactors without.
//
// A TestClient may be used concurrently. Reactors are then called concurrently, too.
type TestClient interface {
	client.Client
	// AddGiven adds objects as if they had been among the GivenObjects. It panics if that is not possible.
	AddGiven(objs ...client.Object)
	// AddReactor adds a reactor after all others. "*" matches every verb and every kind.
	AddReactor(verb, kind string, reaction ReactionFunc)
	// PrependReactor adds a reactor before all others. "*" matches every verb and every kind.
	PrependReactor(verb, kind string, reaction ReactionFunc)
}

// clientWrapper is the [TestClient]. A verb that do does not know must fail instead of not being recorded.
type clientWrapper struct {
	client.Client // makes the calls with do
	client        client.Client
	addGiven      func(client.Object) error
	// executeSubResources makes the client execute calls for subresources other than the status. Otherwise they succeed
	// without an effect.
	executeSubResources bool
	// permissions records what calls need. Optional.
	permissions *rbac.Recorder

	ApplyActions            []ApplyAction
	CreateActions           []objectAction
	UpdateActions           []objectAction
	PatchActions            []PatchAction
	DeleteActions           []DeleteAction
	DeleteCollectionActions []DeleteCollectionAction
	StatusUpdateActions     []objectAction
	StatusPatchActions      []PatchAction
	StatusApplyActions      []ApplyAction
	// SubResourceActions are all writes to subresources other than the status, in order.
	SubResourceActions []Action

	// lock guards the actions above and the fields below.
	lock      sync.Mutex
	reactors  []Reactor
	generated int
	// explanations are reasons for failed calls, for the log.
	explanations []string
	// taken are the existing objects that creates have failed with.
	taken []client.Object
	// moved are the resource versions of objects after patches of their finalizers.
	moved movedVersions
}

var (
	_ TestClient       = (*clientWrapper)(nil)
	_ client.WithWatch = (*clientWrapper)(nil)
)

// NewFakeClientWrapper returns a [TestClient] around a client. AddGiven adds to the tracker.
func NewFakeClientWrapper(c client.Client, tracker clientgotesting.ObjectTracker) *clientWrapper {
	return newClientWrapper(c, func(obj client.Object) error {
		obj, err := givenObject(obj, c.Scheme())
		if err != nil {
			return err
		}
		return tracker.Add(obj)
	})
}

// newClientWrapper returns a [TestClient] around a client and a way to add given objects.
func newClientWrapper(c client.Client, addGiven func(client.Object) error) *clientWrapper {
	w := &clientWrapper{client: c, addGiven: addGiven}
	w.Client = call.NewClient(c, w.do)
	w.AddReactor("create", "*", func(action Action) (handled bool, ret runtime.Object, err error) {
		if create, ok := action.(CreateAction); ok && action.GetSubresource() == "" {
			w.generateName(create.GetObject())
		}
		return false, nil, nil
	})
	return w
}

// AddGiven implements [TestClient].
func (w *clientWrapper) AddGiven(objs ...client.Object) {
	for i, obj := range objs {
		if err := w.addGiven(obj); err != nil {
			panic(fmt.Errorf("unable to add given object [%d]: %w", i, err))
		}
	}
}

// AddReactor implements [TestClient].
func (w *clientWrapper) AddReactor(verb, kind string, reaction ReactionFunc) {
	w.lock.Lock()
	defer w.lock.Unlock()
	// the list is replaced, not changed: calls in progress continue with the list they started with
	w.reactors = append(slices.Clip(w.reactors), &clientgotesting.SimpleReactor{
		Verb: verb, Resource: kind, Reaction: reaction,
	})
}

// PrependReactor implements [TestClient].
func (w *clientWrapper) PrependReactor(verb, kind string, reaction ReactionFunc) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.reactors = append(
		[]Reactor{&clientgotesting.SimpleReactor{Verb: verb, Resource: kind, Reaction: reaction}}, w.reactors...,
	)
}

// do records a call, and executes it unless a reactor fails or answers it.
func (w *clientWrapper) do(ctx context.Context, c call.Call) error {
	switch c.Verb {
	case call.List:
		return w.list(ctx, &c)
	case call.Apply:
		return w.apply(ctx, &c)
	}
	resource, err := w.resourceFor(c.Object)
	if err != nil {
		return err
	}
	if c.OfSubresource() {
		return w.doSubresource(ctx, &c, resource)
	}
	switch c.Verb {
	case call.Get:
		action := clientgotesting.NewGetAction(resource, c.Key.Namespace, c.Key.Name)
		return w.call(action, c.Object, func() error { return c.Do(ctx, w.client) })
	case call.Create:
		return w.create(ctx, &c, resource)
	case call.Update:
		return w.update(ctx, &c, resource)
	case call.Patch:
		return w.patch(ctx, &c, resource)
	case call.Delete:
		return w.delete(ctx, &c, resource)
	case call.DeleteAllOf:
		return w.deleteAllOf(ctx, &c, resource)
	}
	return fmt.Errorf("the verb %q is not recorded", c.Verb)
}

// call executes a call unless a reactor fails or answers it. An answer is copied to into, which may be nil.
func (w *clientWrapper) call(action Action, into any, execute func() error) error {
	w.recordCall(action)
	w.lock.Lock()
	reactors := w.reactors
	w.lock.Unlock()
	for _, reactor := range reactors {
		if !reactor.Handles(action) {
			continue
		}
		handled, returned, err := reactor.React(action)
		if !handled {
			continue
		}
		if err != nil {
			return err
		}
		if object, ok := action.(objectAction); nilcheck.IsNil(returned) || ok && object.GetObject() == returned {
			break
		}
		return w.answer(action, returned, into)
	}
	return execute()
}

// recordAction adds an action to one of the lists.
func recordAction[A Action](w *clientWrapper, list *[]A, action A) {
	w.lock.Lock()
	defer w.lock.Unlock()
	*list = append(*list, action)
}

// maxGeneratedPrefix is where the API server cuts the prefix of a generated name.
const maxGeneratedPrefix = 58

// generateName names an object with a generateName and without a name.
func (w *clientWrapper) generateName(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil || accessor.GetName() != "" || accessor.GetGenerateName() == "" {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.generated++
	prefix := accessor.GetGenerateName()
	accessor.SetName(fmt.Sprintf("%s%03d", prefix[:min(len(prefix), maxGeneratedPrefix)], w.generated))
}

// resourceOf returns the resource of a kind in actions. It has the kind, as the plural is unknown without a server.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: gvk.Kind}
}

func (w *clientWrapper) resourceFor(obj runtime.Object) (schema.GroupVersionResource, error) {
	gvk, err := w.client.GroupVersionKindFor(obj)
	return resourceOf(gvk), err
}

func (w *clientWrapper) list(ctx context.Context, c *call.Call) error {
	action, err := w.listAction("list", c.List, c.ListOptions)
	if err != nil {
		return err
	}
	return w.call(action, c.List, func() error { return c.Do(ctx, w.client) })
}

// Watch implements [client.WithWatch]. Reactors cannot answer it.
func (w *clientWrapper) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	action, err := w.listAction("watch", list, opts)
	if err != nil {
		return nil, err
	}
	var watching watch.Interface
	err = w.call(action, nil, func() (err error) {
		watcher, ok := w.client.(client.WithWatch)
		if !ok {
			return fmt.Errorf("%T cannot watch", w.client)
		}
		watching, err = watcher.Watch(ctx, list, opts...)
		return err
	})
	if err == nil && watching == nil {
		return nil, fmt.Errorf("a reactor answers watch %s, which is not possible", action.GetResource().Resource)
	}
	return watching, err
}

func (w *clientWrapper) listAction(
	verb string, list client.ObjectList, opts []client.ListOption,
) (clientgotesting.ListActionImpl, error) {
	gvk, err := w.client.GroupVersionKindFor(list)
	if err != nil {
		return clientgotesting.ListActionImpl{}, err
	}
	if !strings.HasSuffix(gvk.Kind, "List") {
		// an unstructured list may have the kind of its items
		gvk.Kind += "List"
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	action := clientgotesting.ListActionImpl{
		Kind: gvk, ListRestrictions: restrictions(options), ListOptions: *options.AsListOptions(),
	}
	action.Verb, action.Resource, action.Namespace = verb, resourceOf(gvk), options.Namespace
	return action, nil
}

// restrictions returns the selectors of options, none of them nil.
func restrictions(options *client.ListOptions) clientgotesting.ListRestrictions {
	r := clientgotesting.ListRestrictions{Labels: options.LabelSelector, Fields: options.FieldSelector}
	if r.Labels == nil {
		r.Labels = labels.Everything()
	}
	if r.Fields == nil {
		r.Fields = fields.Everything()
	}
	return r
}

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

// doSubresource records writes of the status, and separately writes of other subresources.
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
