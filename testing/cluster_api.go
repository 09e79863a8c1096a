// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// clusterAPI is the part of a cluster that a case has to do with.
type clusterAPI struct {
	*cluster
	scheme *runtime.Scheme
	// realistic is true if objects that are created get the metadata that the API in memory gives them when a case is
	// Realistic.
	realistic bool
	uids      atomic.Int64
	// real is the client that speaks to the cluster. All objects go through it as unstructured ones, so that nothing is
	// lost that the server adds and that a Go type does not know.
	real client.Client
	// build makes the indexes of the case. Nil for none.
	build func(*fake.ClientBuilder) *fake.ClientBuilder
	// shownMapper is that of the client of the case.
	shownMapper meta.RESTMapper

	// lock guards what is below.
	lock sync.Mutex
	// records are all objects the case has or had; ordered has them in the order in which they were created.
	records map[objectID]*record
	ordered []*record
	byUID   map[types.UID]*record
	// exchanges are all objects that were sent for an id, and what the server has made of them.
	exchanges map[objectID][]exchange
	// notCompared are fields, with their values, that were left out of comparisons.
	notCompared map[objectID][]string
	// unchanged are the updates of the case in which the server has found nothing to change.
	unchanged []*unstructured.Unstructured
	// notes are what to know about a case that fails.
	notes []string
}

// newClusterAPI puts the given objects of a config into a cluster.
func newClusterAPI(ctx context.Context, on *cluster, c *ExpectConfig) (*api, error) {
	a := &clusterAPI{
		cluster: on, scheme: c.Scheme, realistic: c.Realistic, shownMapper: on.mapper, build: c.WithClientBuilder,
		records: map[objectID]*record{}, byUID: map[types.UID]*record{}, exchanges: map[objectID][]exchange{},
		notCompared: map[objectID][]string{},
	}
	config := rest.CopyConfig(on.restConfig)
	config.WarningHandler = nil
	config.WarningHandlerWithContext = clusterWarnings{a}
	var err error
	if a.real, err = client.New(config, client.Options{
		HTTPClient: on.http, Mapper: on.mapper, Scheme: c.Scheme,
	}); err != nil {
		return nil, err
	}
	given, err := a.check(c)
	if err != nil {
		return nil, err
	}
	result := &api{
		client:         &clusterClient{a},
		reader:         &clusterReader{a},
		discovery:      on.discovery,
		addGiven:       a.addGiven,
		normalize:      a.normalize,
		changedNothing: a.changedNothing,
		normalized:     a.normalized,
		close:          a.close,
	}
	if len(c.GivenAPIResources) > 0 {
		result.discovery = nil
		a.shownMapper = newMapper(c.GivenAPIResources)
	}
	if err := a.create(ctx, given); err != nil {
		if closeErr := a.close(); closeErr != nil {
			// No longer a reason to skip the case.
			err = errors.Join(errors.New(err.Error()), closeErr)
		}
		return nil, err
	}
	return result, nil
}

// identify returns the id of an object.
func (a *clusterAPI) identify(kind schema.GroupVersionKind, key client.ObjectKey) (objectID, error) {
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return objectID{}, err
	}
	return idIn(mapping, key), nil
}

// idIn returns the id of an object whose kind has a mapping.
func idIn(mapping *meta.RESTMapping, key client.ObjectKey) objectID {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	return objectID{mapping.GroupVersionKind.Group, mapping.GroupVersionKind.Kind, key.Namespace, key.Name}
}

// toUnstructured returns a copy of an object.
func (a *clusterAPI) toUnstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(obj, a.scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// settle notes what a write of the case has led to.
func (a *clusterAPI) settle(rec *record, sent map[string]any, live *unstructured.Unstructured) {
	a.lock.Lock()
	defer a.lock.Unlock()
	rec.version(live)
	rec.kind = live.GroupVersionKind()
	rec.writers = writersOf(live)
	before := rec.shown
	rec.known, rec.shown = live.DeepCopy(), a.shownOf(rec, live)
	if sent == nil {
		return
	}
	if before != nil {
		rec.changed = true
		// What was there is not added by the server, even if the case has sent something else in its place.
		sent = overlay(before.Object, sent)
	}
	a.exchanges[rec.id] = append(a.exchanges[rec.id], newExchange(sent, rec.shown))
}

// shownOf returns what the case sees of an object.
func (a *clusterAPI) shownOf(rec *record, live *unstructured.Unstructured) *unstructured.Unstructured {
	u := live.DeepCopy()
	rec.show(u)
	u.SetOwnerReferences(a.shownOwners(rec, live))
	return u
}

// add notes a new object of the case.
func (a *clusterAPI) add(rec *record) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.records[rec.id] = rec
	a.byUID[rec.uid] = rec
	a.ordered = append(a.ordered, rec)
}

// find returns the object of an id. Nil if the case has none.
func (a *clusterAPI) find(id objectID) *record {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.records[id]
}

// blank returns an object with the identity of an object of the case.
func (a *clusterAPI) blank(rec *record) *unstructured.Unstructured {
	a.lock.Lock()
	defer a.lock.Unlock()
	return newUnstructured(rec.kind, rec.id.namespace, rec.id.name)
}

// see returns what the case sees of an object that the cluster has. Nil if it does not see it.
func (a *clusterAPI) see(live *unstructured.Unstructured, reader bool) *unstructured.Unstructured {
	kind := live.GroupVersionKind()
	a.lock.Lock()
	defer a.lock.Unlock()
	rec := a.records[objectID{kind.Group, kind.Kind, live.GetNamespace(), live.GetName()}]
	if rec == nil || rec.uid != live.GetUID() || rec.readerOnly && !reader {
		return nil
	}
	rec.noteForeignWrite(live)
	if kind == rec.kind {
		return rec.shown.DeepCopy()
	}
	return a.shownOf(rec, live)
}
