// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/fakeapi"
	"trueup.dev/tracker"
)

// prober makes up events for the watches of a controller, and classifies the watches by the resulting requests.
type prober struct {
	scheme  *runtime.Scheme
	mapper  meta.RESTMapper
	tracker tracker.Tracker
	given   []client.Object
	queue   *requestQueue
	atStart []reconcilers.Request
	notes   sets.Set[string]
}

func newProber(
	m *observedManager, tracker tracker.Tracker, given []client.Object, queue *requestQueue,
) *prober {
	return &prober{
		scheme: m.Scheme, mapper: m.Mapper, tracker: tracker, given: given, queue: queue, atStart: queue.take(),
		notes: sets.New[string](),
	}
}

// Names in the made-up events.
const (
	probeNamespace = "wiring"
	probeName      = "wiring-probe"
	ownerName      = "wiring-owner"
	observerName   = "wiring-observer"
)

// passes are the changes that lead to the expected requests.
type passes = sets.Set[Change]

// relation is a relation of an object to the request of an event. The function prepares the object and returns the
// condition that the request must meet.
type relation func(obj client.Object) func(reconcilers.Request) bool

// itself expects a request for the object itself.
func itself(obj client.Object) func(reconcilers.Request) bool {
	return func(request reconcilers.Request) bool {
		return request.NamespacedName == client.ObjectKeyFromObject(obj)
	}
}

// ownedBy expects a request for an owner of the kind, which controls the object.
func ownedBy(kind schema.GroupVersionKind) relation {
	return func(obj client.Object) func(reconcilers.Request) bool {
		version, name := kind.ToAPIVersionAndKind()
		obj.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: version, Kind: name, Name: ownerName, UID: ownerName, Controller: new(true),
			BlockOwnerDeletion: new(true),
		}})
		return func(request reconcilers.Request) bool { return request.Name == ownerName }
	}
}

// tracked expects a request for a resource that tracks the object.
func (p *prober) tracked(obj client.Object) func(reconcilers.Request) bool {
	observer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: probeNamespace, Name: observerName}}
	if err := p.tracker.TrackObject(obj, observer); err != nil {
		p.notes.Insert(fmt.Sprintf("unable to track a %T: %s", obj, err))
	}
	return func(request reconcilers.Request) bool {
		return request.NamespacedName == client.ObjectKeyFromObject(observer)
	}
}

// anyRequest expects any request.
func anyRequest(client.Object) func(reconcilers.Request) bool {
	return func(reconcilers.Request) bool { return true }
}

// classify returns what a controller with these handlers has asked for, without its name and options.
func (p *prober) classify(handlers []eventHandler) Controller {
	wiring := Controller{AtStart: p.atStart}
	known := make([]bool, len(handlers))
	note := func(i int, field *[]Watch, passes passes) {
		if len(passes) > 0 {
			*field = append(*field, handlers[i].watch.without(passes))
			known[i] = true
		}
	}
	owners := []schema.GroupVersionKind{}
	for i, h := range handlers {
		note(i, &wiring.For, p.try(h, itself))
		if known[i] {
			owners = append(owners, h.kind)
		}
	}
	if len(owners) == 0 {
		owners = p.allKinds(handlers)
	}
	for i, h := range handlers {
		note(i, &wiring.Owns, p.tryOwners(h, owners))
		note(i, &wiring.Tracks, p.try(h, p.tracked))
		if known[i] {
			continue
		}
		passes := p.try(h, anyRequest)
		wiring.Watches = append(wiring.Watches, h.watch.without(passes))
		if len(passes) == 0 {
			p.notes.Insert("no event of " + h.watch.String() +
				" led to a request: the predicates or the handler may accept only certain objects, or use a tracker other " +
				"than that of the config. Give an object that they accept to see what it leads to.")
		}
	}
	for _, field := range []*[]Watch{&wiring.For, &wiring.Owns, &wiring.Tracks, &wiring.Watches} {
		*field = mergeWatches(*field)
	}
	wiring.Notes = sets.List(p.notes)
	return wiring
}

// try returns the changes of objects in a relation that lead to the expected requests.
func (p *prober) try(h eventHandler, relation relation) passes {
	// A request that an object of another name leads to as well says nothing about a relation.
	constant := sets.New[types.NamespacedName]()
	passes := passes{}
	for i, obj := range p.objects(h) {
		if constant.Has(client.ObjectKeyFromObject(obj)) {
			continue
		}
		expected := relation(obj)
		for _, change := range Changes {
			for _, request := range p.deliver(h, change, obj) {
				if expected(request) {
					passes.Insert(change)
				}
				if i == 0 {
					constant.Insert(request.NamespacedName)
				}
			}
		}
	}
	return passes
}

// tryOwners tries owners of several kinds until the watch is for one of them.
func (p *prober) tryOwners(h eventHandler, kinds []schema.GroupVersionKind) passes {
	for _, kind := range kinds {
		if passes := p.try(h, ownedBy(kind)); len(passes) > 0 {
			return passes
		}
	}
	return nil
}

// deliver sends a handler the event of a change of an object and returns the resulting requests.
func (p *prober) deliver(h eventHandler, change Change, obj client.Object) []reconcilers.Request {
	defer func() {
		// Predicates may rely on fields that every object in a real cluster has.
		if cause := recover(); cause != nil {
			p.notes.Insert(
				fmt.Sprintf("an event of %s made a predicate or the handler of the watch panic: %v", h.watch.String(), cause),
			)
		}
	}()
	p.queue.take()
	change.deliver(h, obj.DeepCopyObject().(client.Object), fakeapi.CountsGenerations(h.kind.GroupKind()))
	return p.queue.take()
}

// objects returns the objects that a watch is tried with: first one with a name that nothing refers to, then one with
// the name of each request at the start, then the given ones.
func (p *prober) objects(h eventHandler) []client.Object {
	objects := []client.Object{p.object(h, types.NamespacedName{Namespace: probeNamespace, Name: probeName})}
	for _, request := range p.atStart {
		objects = append(objects, p.object(h, request.NamespacedName))
	}
	for _, given := range p.given {
		if obj := p.inForm(given, h); obj != nil {
			objects = append(objects, obj)
		}
	}
	return objects
}

func (p *prober) object(h eventHandler, name types.NamespacedName) client.Object {
	obj := h.watch.Object.DeepCopyObject().(client.Object)
	mapping, err := p.mapper.RESTMapping(h.kind.GroupKind(), h.kind.Version)
	if err != nil || mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		obj.SetNamespace(name.Namespace)
	}
	obj.SetName(name.Name)
	obj.SetUID(types.UID(name.Name))
	obj.SetResourceVersion("1")
	if fakeapi.CountsGenerations(h.kind.GroupKind()) {
		obj.SetGeneration(1)
	}
	return obj
}

// inForm returns a copy of an object in the form that is watched, and nil if it is of another kind.
func (p *prober) inForm(given client.Object, h eventHandler) client.Object {
	if kind, err := apiutil.GVKForObject(given, p.scheme); err != nil || kind != h.kind {
		return nil
	}
	obj := h.watch.Object.DeepCopyObject().(client.Object)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(given)
	if err == nil {
		if u, ok := obj.(runtime.Unstructured); ok {
			u.SetUnstructuredContent(content)
		} else {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
		}
	}
	if err != nil {
		p.notes.Insert(fmt.Sprintf("unable to make an event of %s: %s", h.watch.String(), err))
		return nil
	}
	if carriesKind(obj) {
		obj.GetObjectKind().SetGroupVersionKind(h.kind)
	}
	return obj
}

// allKinds returns all possible kinds of owners.
func (p *prober) allKinds(handlers []eventHandler) []schema.GroupVersionKind {
	kinds := map[schema.GroupKind]schema.GroupVersionKind{}
	for kind := range p.scheme.AllKnownTypes() {
		kinds[kind.GroupKind()] = kind
	}
	for _, h := range handlers {
		kinds[h.kind.GroupKind()] = h.kind
	}
	all := make([]schema.GroupVersionKind, 0, len(kinds))
	for _, kind := range kinds {
		all = append(all, kind)
	}
	return all
}

// without returns the watch, which ignores all changes except for those that pass. If no change passes, it is unknown
// what the watch ignores, and the watch returned ignores nothing.
func (w Watch) without(passes passes) Watch {
	for _, change := range Changes {
		if len(passes) > 0 && !passes.Has(change) {
			w.Ignores = append(w.Ignores, change)
		}
	}
	return w
}

// mergeWatches returns one watch for each kind, sorted. It ignores the changes that all watches for the kind ignore.
func mergeWatches(watches []Watch) []Watch {
	var merged []Watch
	for _, watch := range watches {
		i, ok := slices.BinarySearchFunc(merged, watch, func(a, b Watch) int {
			return strings.Compare(a.String(), b.String())
		})
		if !ok {
			merged = slices.Insert(merged, i, watch)
			continue
		}
		merged[i].Ignores = slices.DeleteFunc(merged[i].Ignores, func(change Change) bool {
			return !slices.Contains(watch.Ignores, change)
		})
		if len(merged[i].Ignores) == 0 {
			merged[i].Ignores = nil
		}
	}
	return merged
}
