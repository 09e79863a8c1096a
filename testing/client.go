// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestClient is the client of an [ExpectConfig]: it records all writes, and reactors see, change, answer and fail calls
// before they are executed.
//
// Reactors are asked in their order until one says that it handles the call:
//
//   - An error fails the call.
//   - An object other than that of the action is the answer. It is copied into what the caller has passed, from another
//     Go type of the same kind if need be, and the call is executed no further. A Status answers a call without
//     changing what the caller has passed, or fails it if that is what it says.
//   - Otherwise the call is executed. Changes of the object of the action, which is the one the caller has passed, are
//     part of it. So admission and defaulting can be simulated.
//
// Writes are recorded before that, as they are passed by the caller, and even if they fail.
//
// Objects that are created with a generateName get a predictable name: the calls of a client that create such are
// counted, and the names end in 001, 002 and so on. They have it when reactors are asked that were added by AddReactor,
// but do not when it is the turn of prepended ones.
//
// A TestClient may be used concurrently. Reactors are then called concurrently, too.
type TestClient interface {
	client.Client
	// AddGiven adds objects as if they had been there from the start. It panics when that is not possible.
	AddGiven(objs ...client.Object)
	// AddReactor has a reaction called after those that are there. "*" matches every verb and every kind.
	AddReactor(verb, kind string, reaction ReactionFunc)
	// PrependReactor has a reaction called before those that are there. "*" matches every verb and every kind.
	PrependReactor(verb, kind string, reaction ReactionFunc)
}

// clientWrapper is the [TestClient]. It embeds no client: an operation that controller-runtime adds must fail to
// compile here rather than not be recorded.
type clientWrapper struct {
	client   client.Client
	addGiven func(client.Object) error
	// executeSubResources has the calls for sub resources other than the status executed. They only seem to succeed
	// otherwise.
	executeSubResources bool

	ApplyActions            []ApplyAction
	CreateActions           []objectAction
	UpdateActions           []objectAction
	PatchActions            []PatchAction
	DeleteActions           []DeleteAction
	DeleteCollectionActions []DeleteCollectionAction
	StatusUpdateActions     []objectAction
	StatusPatchActions      []PatchAction
	StatusApplyActions      []ApplyAction
	// SubResourceActions are all writes to sub resources other than the status, in order.
	SubResourceActions []Action

	// lock guards what is recorded and what is below.
	lock      sync.Mutex
	reactors  []Reactor
	generated int
	// explanations are for people who wonder why a call has failed.
	explanations []string
	// taken are the objects that are in the way of others, as creates that have failed say.
	taken []client.Object
	// moved are the versions that objects got by patches of their finalizers.
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
	// the list is replaced, not changed: calls in progress go on with the one they have begun with
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

// call executes a call unless a reactor fails or answers it. Into is what an answer is copied into, nil for none.
func (w *clientWrapper) call(action Action, into any, execute func() error) error {
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
		if object, ok := action.(objectAction); isNil(returned) || ok && object.GetObject() == returned {
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

// generateName names an object that asks for it and has no name yet.
func (w *clientWrapper) generateName(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil || accessor.GetName() != "" || accessor.GetGenerateName() == "" {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.generated++
	accessor.SetName(fmt.Sprintf("%s%03d", accessor.GetGenerateName(), w.generated))
}

// resourceOf returns what stands for a kind in actions. The plural is not known without a server.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: gvk.Kind}
}

func (w *clientWrapper) resourceFor(obj runtime.Object) (schema.GroupVersionResource, error) {
	gvk, err := w.client.GroupVersionKindFor(obj)
	return resourceOf(gvk), err
}

// Scheme implements [client.Client].
func (w *clientWrapper) Scheme() *runtime.Scheme { return w.client.Scheme() }

// RESTMapper implements [client.Client].
func (w *clientWrapper) RESTMapper() meta.RESTMapper { return w.client.RESTMapper() }

// GroupVersionKindFor implements [client.Client].
func (w *clientWrapper) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return w.client.GroupVersionKindFor(obj)
}

// IsObjectNamespaced implements [client.Client].
func (w *clientWrapper) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return w.client.IsObjectNamespaced(obj)
}
