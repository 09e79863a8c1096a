// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"maps"
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

// sort adds a table to the tables of events.
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

// Load stores a copy of an object of another server as it is there, with its UID, resource version and managed fields,
// and with defaults, which a fake server may not have set. It replaces an object of the same name. It is not an event.
// Later versions of all objects are higher.
func (s *Server) Load(obj client.Object) error {
	t, err := s.tableOf(obj)
	if err != nil {
		return err
	}
	stored, status, err := t.loaded(obj)
	if err != nil {
		return err
	}
	if err := t.kind.Default(stored); err != nil {
		return fmt.Errorf("load %s %s: %w", t.kind.Kind, client.ObjectKeyFromObject(obj), err)
	}
	version, err := parseVersion(stored)
	if err != nil {
		return fmt.Errorf("load %s %s: %w", t.kind.Kind, client.ObjectKeyFromObject(obj), err)
	}
	s.version = max(s.version, int64(version)) //nolint:gosec // versions of etcd are int64
	r := &record{
		table: t, key: client.ObjectKeyFromObject(obj), object: stored, uid: stored.GetUID(),
		version: int64(version), //nolint:gosec // as above
		managed: s.applier != nil && len(stored.GetManagedFields()) > 0, status: status,
	}
	r.waited = r.waits()
	s.insert(t, r)
	return nil
}

// insert stores a record without an event.
func (s *Server) insert(t *table, r *record) {
	s.garbageVersion = 0
	i, found := t.find(r.key)
	if !found {
		t.sorted = slices.Insert(t.sorted, i, r)
	}
	t.sorted[i], t.objects[r.key] = r, r
}

// loaded returns a copy of an object in the stored type, and whether a custom object has a status.
func (t *table) loaded(obj client.Object) (_ client.Object, status bool, err error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, false, err
	}
	content = runtime.DeepCopyJSON(content)
	content["apiVersion"], content["kind"] = t.kind.GroupVersion().String(), t.kind.Kind
	_, status = content["status"]
	stored, err := t.parse(content)
	if err != nil {
		return nil, false, err
	}
	t.kind.Normalize(stored)
	return stored, status && t.kind.Custom, nil
}

// Amend replaces the content of a stored object by the content of another one, as a mutating webhook does that runs
// after the write. It keeps the version, the managed fields and all that identifies the object. With the subresource
// status only the status is replaced, otherwise all but the status, if the kind has that subresource. It is not an
// event, but [Server.Events] has the amended object if it was the last one that changed. It does nothing if the object
// does not exist.
func (s *Server) Amend(obj client.Object, subresource string) error {
	t, err := s.tableOf(obj)
	if err != nil {
		return err
	}
	r := t.objects[client.ObjectKeyFromObject(obj)]
	if r == nil {
		return nil
	}
	other, status, err := t.loaded(obj)
	if err != nil {
		return err
	}
	from := (&record{table: t, object: other, status: status}).contents(t)
	content := maps.Clone(r.contents(t))
	if subresource == statusSubresource {
		replaceField(content, from, statusSubresource)
	} else {
		for _, name := range fieldsOf(content, from) {
			if name != "metadata" && (name != statusSubresource || !t.kind.Status) {
				replaceField(content, from, name)
			}
		}
		metadata, _ := content["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		given, _ := from["metadata"].(map[string]any)
		for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			replaceField(metadata, given, name)
		}
		content["metadata"] = metadata
	}
	amended, err := t.parse(runtime.DeepCopyJSON(content))
	if err != nil {
		return err
	}
	now := *r
	now.object, now.content, now.other = amended, nil, nil
	if _, now.status = content["status"]; !t.kind.Custom {
		now.status = r.status
	}
	t.replace(&now)
	if last := len(s.history) - 1; last >= 0 && s.history[last].record == r {
		s.history[last].record, s.history[last].Object = &now, s.show(t.shown, &now).object
	}
	return nil
}

func replaceField(content, from map[string]any, name string) {
	if value, found := from[name]; found {
		content[name] = value
	} else {
		delete(content, name)
	}
}

// fieldsOf returns the fields that either of two contents has.
func fieldsOf(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Collect(maps.Keys(all))
}

// Content returns a stored object as maps and lists, which must not be changed, or nil if it does not exist.
func (s *Server) Content(kind schema.GroupVersionKind, key client.ObjectKey) map[string]any {
	t := s.tables[kind]
	if t == nil || t.objects[key] == nil {
		return nil
	}
	return s.show(t, t.objects[key]).contents(t)
}
