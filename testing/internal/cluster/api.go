// SPDX-License-Identifier: Apache-2.0

package cluster

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
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// API is the part of a cluster that a case uses. It may be used concurrently.
type API struct {
	*Cluster
	scheme *runtime.Scheme
	// realistic is set if created objects are shown with the metadata that a realistic API in memory gives them.
	realistic bool
	uids      atomic.Int64
	// real is the client of the cluster. All objects pass it as unstructured objects, so that fields that the server adds
	// are kept even if the Go type does not have them.
	real client.Client
	// build sets the indexes of the case. Nil for none.
	build func(*fake.ClientBuilder) *fake.ClientBuilder
	// shownMapper is the RESTMapper of the client of the case.
	shownMapper meta.RESTMapper

	// lock guards the fields below.
	lock sync.Mutex
	// records are all objects that the case has or had, by id; ordered has them in the order of their creation.
	records map[objectID]*record
	ordered []*record
	byUID   map[types.UID]*record
	// exchanges are all objects that were sent, by id, with the responses of the server.
	exchanges map[objectID][]exchange
	// notCompared are the fields, with their values, that were left out of comparisons.
	notCompared map[objectID][]string
	// unchanged are the updates of the case in which the server found nothing to change.
	unchanged []*unstructured.Unstructured
	// notes are printed if the case fails.
	notes []string
}

// newAPI creates the given objects of a case in a cluster.
func newAPI(ctx context.Context, on *Cluster, c Case) (*API, error) {
	a := &API{
		Cluster: on, scheme: c.Scheme, realistic: c.Realistic, shownMapper: c.RESTMapper, build: c.WithClientBuilder,
		records: map[objectID]*record{}, byUID: map[types.UID]*record{}, exchanges: map[objectID][]exchange{},
		notCompared: map[objectID][]string{},
	}
	if a.shownMapper == nil {
		a.shownMapper = on.mapper
	}
	config := rest.CopyConfig(on.restConfig)
	config.WarningHandler = nil
	config.WarningHandlerWithContext = warnings{a}
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
	if err := a.create(ctx, given); err != nil {
		if closeErr := a.Close(); closeErr != nil {
			// the case must fail now instead of being skipped
			err = errors.Join(errors.New(err.Error()), closeErr)
		}
		return nil, err
	}
	return a, nil
}

// Client returns the client of the case.
func (a *API) Client() client.Client { return &caseClient{a} }

// Reader returns a reader that also sees the objects that are given to the reader only.
func (a *API) Reader() client.Reader { return &caseReader{a} }

// Discovery returns the discovery client of the cluster.
func (a *API) Discovery() discovery.DiscoveryInterface { return a.discovery }

// identify returns the id of an object.
func (a *API) identify(kind schema.GroupVersionKind, key client.ObjectKey) (objectID, error) {
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return objectID{}, err
	}
	return idIn(mapping, key), nil
}

// idIn returns the id of an object from the mapping of its kind.
func idIn(mapping *meta.RESTMapping, key client.ObjectKey) objectID {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	return objectID{mapping.GroupVersionKind.Group, mapping.GroupVersionKind.Kind, key.Namespace, key.Name}
}

// toUnstructured returns an unstructured copy of an object.
func (a *API) toUnstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
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

// settle records the result of a write of the case.
func (a *API) settle(rec *record, sent map[string]any, live *unstructured.Unstructured) {
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
		// fields that existed before were not added by the server, even if the case has sent another value
		sent = overlay(before.Object, sent)
	}
	a.exchanges[rec.id] = append(a.exchanges[rec.id], newExchange(sent, rec.shown))
}

// shownOf returns a live object as the case sees it.
func (a *API) shownOf(rec *record, live *unstructured.Unstructured) *unstructured.Unstructured {
	u := live.DeepCopy()
	rec.show(u)
	u.SetOwnerReferences(a.shownOwners(rec, live))
	return u
}

// add records a new object of the case.
func (a *API) add(rec *record) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.records[rec.id] = rec
	a.byUID[rec.uid] = rec
	a.ordered = append(a.ordered, rec)
}

// find returns the record of an object, or nil if the case does not have it.
func (a *API) find(id objectID) *record {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.records[id]
}

// blank returns an object with only the identity of an object of the case.
func (a *API) blank(rec *record) *unstructured.Unstructured {
	a.lock.Lock()
	defer a.lock.Unlock()
	return newUnstructured(rec.kind, rec.id.namespace, rec.id.name)
}

// see returns a live object as the case sees it, or nil if it is hidden from the case.
func (a *API) see(live *unstructured.Unstructured, reader bool) *unstructured.Unstructured {
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
