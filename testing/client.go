// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph/rbac"
	"trueup.dev/internal/call"
	"trueup.dev/internal/objects/nilcheck"
)

// TestClient is the client of an [ExpectConfig]. It records all writes. Its reactors observe, change, answer or fail
// calls before they are executed.
//
// Reactors are called in their order until one returns that it has handled the call:
//
//   - An error fails the call.
//   - An object other than that of the action is the answer. It is copied into the object that the caller has passed,
//     also from another Go type of the same kind, and the call is not executed. A Status answers a call without
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
