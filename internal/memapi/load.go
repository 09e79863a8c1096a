// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// Amend replaces the content of a stored object by that of another one, as a mutating webhook does that runs after the
// write. It keeps the version, the managed fields and all that identifies the object. With the subresource status only
// the status is replaced, otherwise all but the status, if the kind has that subresource. It is not an event, but
// [Server.Events] has the amended object if it was the last one that changed. It does nothing if the object does not
// exist.
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
