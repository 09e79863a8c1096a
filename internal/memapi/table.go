// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/memapi/kinds"
)

// table stores the objects of a kind, or shows them in another version than that in which they are stored.
type table struct {
	*shelf

	kind     *kinds.Kind
	resource schema.GroupResource
	goType   reflect.Type // objects are pointers to it; nil for unstructured objects
}

// record is a version of an object.
type record struct {
	table   *table // the version of the object
	key     client.ObjectKey
	object  client.Object
	uid     types.UID
	version int64
	managed bool // whether managed fields are kept, because it was applied
	status  bool // whether a custom object has a status, which may be empty: its Go type cannot represent that
	waited  bool // whether its deletion has waited for its dependents at any time
	loose   bool // whether it was stored with fields that are not read, so that each write changes it: see tidy
	scaled  bool // whether the last write was to its scale

	content map[string]any // the object as maps and lists; nil until needed
	other   *otherForms    // nil if there are none
}

// table returns the table of a kind, or an error if the kind is not served.
func (s *Server) table(gvk schema.GroupVersionKind) (*table, error) {
	if t := s.tables[gvk]; t != nil {
		return t, nil
	}
	kind, served := s.registry.For(gvk)
	if !served {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	s.sort(s.newShelf(kind).shown)
	return s.tables[gvk], nil
}

// sort adds a table to those of events.
func (s *Server) sort(t *table) {
	i, _ := slices.BinarySearchFunc(s.sorted, t, func(a, b *table) int {
		return compareKinds(a.kind.GroupVersionKind, b.kind.GroupVersionKind)
	})
	s.sorted = slices.Insert(s.sorted, i, t)
}

// tableOf returns the table for an object or a list.
func (s *Server) tableOf(obj runtime.Object) (*table, error) {
	goType := reflect.TypeOf(obj)
	if t := s.types[goType]; t != nil {
		return t, nil
	}
	gvk, err := apiutil.GVKForObject(obj, s.registry.Scheme())
	if err != nil {
		return nil, err
	}
	if meta.IsListType(obj) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	t, err := s.table(gvk)
	if err == nil && !isGeneric(obj) {
		s.types[goType] = t
	}
	return t, err
}

func compareKeys(a, b client.ObjectKey) int {
	if a.Namespace != b.Namespace {
		return strings.Compare(a.Namespace+"/", b.Namespace+"/") // as paths are ordered
	}
	return strings.Compare(a.Name, b.Name)
}

func (t *table) find(key client.ObjectKey) (int, bool) {
	return slices.BinarySearchFunc(t.sorted, key, func(r *record, key client.ObjectKey) int {
		return compareKeys(r.key, key)
	})
}

// request returns the request for a change that the server makes for a client.
func (r *record) request(by string) request {
	return request{client: by, managed: r.managed, status: r.status}
}

// put stores an object in the version of the storage as the next version, and returns its record. The object must not
// be changed afterwards.
func (s *Server) put(t *table, key client.ObjectKey, obj client.Object, req request) *record {
	s.version++
	obj.SetResourceVersion(strconv.FormatInt(s.version, 10))
	r := &record{
		table: t, key: key, object: obj, uid: obj.GetUID(), version: s.version, managed: req.managed, status: req.status,
		loose: len(req.lost) > 0, scaled: req.subresource == scaleSubresource, other: req.written,
	}
	event := Event{
		Version: s.version, Type: watch.Added, Kind: t.kind.GroupVersionKind, Key: key, Object: obj,
		Client: req.client, request: req, at: s.now(), record: r,
	}
	i, found := t.find(key)
	if !found {
		t.sorted = slices.Insert(t.sorted, i, r)
	} else {
		event.Type, event.Old, event.before = watch.Modified, t.sorted[i].object, t.sorted[i]
		t.sorted[i] = r
	}
	r.waited = r.waits() || event.before != nil && event.before.waited
	t.objects[key] = r
	s.record(t, event)
	return r
}

// replace sets another record for the same version of an object.
func (t *table) replace(r *record) {
	i, _ := t.find(r.key)
	t.sorted[i], t.objects[r.key] = r, r
}

// remove removes an object for a client. The record is the stored one.
func (s *Server) remove(t *table, r *record, by string) {
	s.version++
	last := shallowCopy(r.object)
	last.SetResourceVersion(strconv.FormatInt(s.version, 10))
	i, _ := t.find(r.key)
	t.sorted = slices.Delete(t.sorted, i, i+1)
	delete(t.objects, r.key)
	t.used(r.key)
	s.record(t, Event{
		Version: s.version, Type: watch.Deleted, Kind: t.kind.GroupVersionKind, Key: r.key, Object: last, Old: r.object,
		Client: by, before: r,
		record: &record{table: r.table, key: r.key, object: last, uid: r.uid, version: s.version, status: r.status},
	})
}

// used makes the next object with a key get another UID.
func (t *table) used(key client.ObjectKey) {
	if t.lives == nil {
		t.lives = map[client.ObjectKey]uint64{}
	}
	t.lives[key]++
}

func (s *Server) record(t *table, event Event) {
	if t != t.shown || event.record.table != t {
		event.Kind, event.Object = t.shown.kind.GroupVersionKind, s.show(t.shown, event.record).object
		if event.before != nil {
			event.Old = s.show(t.shown, event.before).object
		}
	} else if event.before != nil && event.before.table != t {
		event.Old = s.show(t, event.before).object
	}
	s.history = append(s.history, event)
	for _, w := range s.watchers {
		w.see(s, event)
	}
}

// storagePaths are the storage paths of resources that are not stored under their name.
var storagePaths = map[schema.GroupResource]string{
	{Resource: "services"}:                              "services/specs",
	{Resource: "endpoints"}:                             "services/endpoints",
	{Resource: "nodes"}:                                 "minions",
	{Resource: "replicationcontrollers"}:                "controllers",
	{Group: "networking.k8s.io", Resource: "ingresses"}: "ingress",
}

// storageKey returns the path of an object in messages of the storage.
func (t *table) storageKey(key client.ObjectKey, dryRun bool) string {
	path := t.resource.Resource
	if t.kind.Custom {
		path = t.resource.Group + "/" + path
	} else if renamed, ok := storagePaths[t.resource]; ok {
		path = renamed
	}
	if path = "/" + path; !dryRun {
		path = "/registry" + path
	}
	if key.Namespace != "" {
		path += "/" + key.Namespace
	}
	return path + "/" + key.Name
}
