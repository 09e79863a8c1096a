// SPDX-License-Identifier: Apache-2.0

package testing

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

// prober makes up events for the watches of a controller, and looks at the requests that come of them.
type prober struct {
	scheme  *runtime.Scheme
	mapper  meta.RESTMapper
	tracker tracker.Tracker
	given   []client.Object
	queue   *requestQueue
	atStart []reconcilers.Request
	notes   sets.Set[string]
}

// Names of things that do not exist.
const (
	probeNamespace = "wiring"
	probeName      = "wiring-probe"
	ownerName      = "wiring-owner"
	observerName   = "wiring-observer"
)

// passes are the changes that lead to the requests that were looked for.
type passes = sets.Set[Change]

// relation is how an object may lead to a request. It prepares the object for that and returns what a request has to
// fulfil.
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

// anyone expects any request.
func anyone(client.Object) func(reconcilers.Request) bool {
	return func(reconcilers.Request) bool { return true }
}

// classify returns the wiring that the watches make.
func (p *prober) classify(handlers []watchHandler) Wiring {
	wiring := Wiring{}
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
		passes := p.try(h, anyone)
		wiring.Watches = append(wiring.Watches, h.watch.without(passes))
		if len(passes) == 0 {
			p.notes.Insert("no event of " + h.watch.text() +
				" has made a request: predicates or the handler may want other objects, or a tracker that is not " +
				"the one of the config. Give an object that they accept to see what it leads to.")
		}
	}
	for _, field := range []*[]Watch{&wiring.For, &wiring.Owns, &wiring.Tracks, &wiring.Watches} {
		*field = mergeWatches(*field)
	}
	return wiring
}

// try returns the changes of objects in a relation that lead to the requests that are to be expected.
func (p *prober) try(h watchHandler, relation relation) passes {
	// A request that an object with another name leads to as well does not tell anything about a relation.
	constant := sets.New[types.NamespacedName]()
	passes := passes{}
	for i, obj := range p.objects(h) {
		if constant.Has(client.ObjectKeyFromObject(obj)) {
			continue
		}
		expected := relation(obj)
		for _, change := range allChanges {
			for _, request := range p.tell(h, change, obj) {
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

// tryOwners tries owners of several kinds until there is one that the watch is for.
func (p *prober) tryOwners(h watchHandler, kinds []schema.GroupVersionKind) passes {
	for _, kind := range kinds {
		if passes := p.try(h, ownedBy(kind)); len(passes) > 0 {
			return passes
		}
	}
	return nil
}

// tell tells a handler of a change of an object and returns the requests that come of it.
func (p *prober) tell(h watchHandler, change Change, obj client.Object) []reconcilers.Request {
	defer func() {
		// Predicates may rely on fields that every object in a real cluster has.
		if cause := recover(); cause != nil {
			p.notes.Insert(
				fmt.Sprintf("an event of %s made a predicate or the handler of the watch panic: %v", h.watch.text(), cause),
			)
		}
	}()
	p.queue.take()
	change.tell(h, obj.DeepCopyObject().(client.Object), fakeapi.CountsGenerations(h.kind.GroupKind()))
	return p.queue.take()
}

// objects returns the objects that a watch is tried with: one of no importance first, one with the name that each
// request at the start has, and those that are given.
func (p *prober) objects(h watchHandler) []client.Object {
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

func (p *prober) object(h watchHandler, name types.NamespacedName) client.Object {
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

// inForm returns a copy of an object in the form that is watched, and nil when it is not of the kind.
func (p *prober) inForm(given client.Object, h watchHandler) client.Object {
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
		p.notes.Insert(fmt.Sprintf("unable to make an event of %s: %s", h.watch.text(), err))
		return nil
	}
	if carriesKind(obj) {
		obj.GetObjectKind().SetGroupVersionKind(h.kind)
	}
	return obj
}

// allKinds returns all kinds that may be owners.
func (p *prober) allKinds(handlers []watchHandler) []schema.GroupVersionKind {
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

// without returns the watch, which ignores all other changes than those that pass. It ignores nothing that is known
// when none passes.
func (w Watch) without(passes passes) Watch {
	for _, change := range allChanges {
		if len(passes) > 0 && !passes.Has(change) {
			w.Ignores = append(w.Ignores, change)
		}
	}
	return w
}

// mergeWatches returns one watch for each kind, in order. It ignores what all watches for the kind ignore.
func mergeWatches(watches []Watch) []Watch {
	var merged []Watch
	for _, watch := range watches {
		i, ok := slices.BinarySearchFunc(merged, watch, func(a, b Watch) int { return strings.Compare(a.text(), b.text()) })
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
