// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/kinds"
)

// shelf has the objects of a kind. Its versions share it.
type shelf struct {
	objects map[client.ObjectKey]*record
	sorted  []*record
	lives   map[client.ObjectKey]uint64 // the number of UIDs used
	// stored are the versions in which objects were stored before the last change of the definition.
	stored []string

	storage  *table   // the version in which objects are stored
	shown    *table   // the version of events
	versions []*table // all versions, also those that are not served
}

// otherForms are the other forms of a stored object.
type otherForms struct {
	version *table        // of the request that has written it, if it is not the version of the storage
	raw     client.Object // without the defaults of its version; nil if that is the same
	records []*record     // in other versions, as far as they were needed
}

// several reports whether the kind has several versions.
func (s *shelf) several() bool { return len(s.versions) > 1 }

// newShelf returns the shelf of a kind, with the tables of its versions, which are served from now on.
func (s *Server) newShelf(kind *kinds.Kind) *shelf {
	if found := s.unserved[kind.GroupKind()]; found != nil {
		delete(s.unserved, kind.GroupKind())
		s.serve(found, kind)
		return found
	}
	if kind.Versions == nil || !kind.Versions.Several() {
		one := &struct {
			table

			own shelf
			all [1]*table
		}{}
		one.all[0] = &one.table
		one.own = shelf{objects: map[client.ObjectKey]*record{}, versions: one.all[:], storage: &one.table, shown: &one.table}
		one.table = s.newTable(&one.own, kind)
		s.tables[kind.GroupVersionKind] = &one.table
		return &one.own
	}
	found := &shelf{objects: map[client.ObjectKey]*record{}}
	s.serve(found, kind)
	return found
}

func (s *Server) newTable(on *shelf, kind *kinds.Kind) table {
	return table{
		shelf: on, kind: kind, resource: schema.GroupResource{Group: kind.Group, Resource: kind.Plural},
		goType: s.registry.Scheme().AllKnownTypes()[kind.GroupVersionKind],
	}
}

// serve creates the tables of the versions of a kind.
func (s *Server) serve(found *shelf, kind *kinds.Kind) {
	versions, storage := []*kinds.Kind{kind}, kind
	if kind.Versions != nil {
		versions, storage = kind.Versions.All, kind.Versions.Storage
	}
	shown := s.shown[kind.GroupKind()]
	found.versions, found.shown = nil, nil
	for _, k := range versions {
		t := new(s.newTable(found, k))
		found.versions = append(found.versions, t)
		if k == storage {
			found.storage = t
		}
		if _, served := s.registry.For(k.GroupVersionKind); !served {
			continue
		}
		s.tables[k.GroupVersionKind] = t
		if found.shown == nil || k.Version == shown || shown != found.shown.kind.Version && k == storage {
			found.shown = t
		}
	}
}

// Redefine replaces the kinds that the server serves, as when a CustomResourceDefinition is changed. Objects are kept:
// they are converted when they are read, and stored in the new storage version when they are written. Watches of
// versions that are no longer served end. The registry must have the same scheme and the same kinds, except for
// custom kinds with a definition: it may have more of them, and those without objects may be absent.
//
// The error lists the versions in which objects are stored, and which the new definition does not have: a real server
// refuses such a definition. Nothing has changed then. With [Options.FinalizeDefinitions] the error is always
// nil: the stored versions are in the status of the definitions.
func (s *Server) Redefine(registry *kinds.Registry, applier Applier) error {
	if !s.finalizes {
		if err := s.checkStored(registry); err != nil {
			return err
		}
	}
	s.registry, s.applier = registry, applier
	clear(s.types)
	old := s.sorted
	s.sorted = nil
	for _, t := range old {
		if t.kind.Versions == nil {
			s.sort(t)
			continue
		}
		for _, version := range t.versions {
			delete(s.tables, version.kind.GroupVersionKind)
		}
		kind := servedVersion(registry, t.kind.GroupKind())
		t.stored = t.storedVersions()
		if kind == nil {
			if len(t.sorted) > 0 {
				s.unserve(t)
			}
			continue
		}
		s.serve(t.shelf, kind)
		s.sort(t.shown)
	}
	s.rewatch()
	s.garbageVersion = 0
	return nil
}

// unserve keeps the objects of a kind that is no longer served.
func (s *Server) unserve(t *table) {
	if s.unserved == nil {
		s.unserved = map[schema.GroupKind]*shelf{}
	}
	s.unserved[t.kind.GroupKind()] = t.shelf
}

// Show makes later events have a version of a kind, which must be served. Earlier events keep theirs.
func (s *Server) Show(kind schema.GroupVersionKind) {
	t, err := s.table(kind)
	if err != nil || t.shown == t {
		return
	}
	s.sorted = slices.DeleteFunc(s.sorted, func(other *table) bool { return other == t.shown })
	t.shown = t
	s.sort(t)
	s.garbageVersion = 0
}

// rewatch lets the watches continue with the new tables of their versions.
func (s *Server) rewatch() {
	for _, w := range s.open() {
		if t, err := s.table(w.table.kind.GroupVersionKind); err == nil {
			w.table = t
		} else {
			w.Stop()
		}
	}
}

// checkStored returns an error for each version in which objects are stored, and which a registry does not have.
func (s *Server) checkStored(registry *kinds.Registry) error {
	var errs []error
	for _, t := range s.sorted {
		if t.kind.Versions == nil {
			continue
		}
		kind := servedVersion(registry, t.kind.GroupKind())
		if kind == nil && len(t.sorted) == 0 {
			continue
		}
		if kind == nil || kind.Versions == nil {
			errs = append(errs, fmt.Errorf("%s: the definition is required", t.kind.GroupKind()))
			continue
		}
		for i, version := range t.storedVersions() {
			if kind.Versions.Of(version) == nil {
				errs = append(errs, fmt.Errorf(
					"CustomResourceDefinition.apiextensions.k8s.io %q is invalid: status.storedVersions[%d]: Invalid value: %q: "+
						"missing from spec.versions; %[3]s was previously a storage version, and must remain in spec.versions "+
						"until a storage migration ensures no data remains persisted in %[3]s and removes %[3]s from "+
						"status.storedVersions", kind.Plural+"."+kind.Group, i, version,
				))
			}
		}
	}
	return errors.Join(errs...)
}

// storedVersions returns the versions in which objects were stored at any time, as the status of a definition lists
// them.
func (s *shelf) storedVersions() []string {
	if version := s.storage.kind.Version; !slices.Contains(s.stored, version) {
		return append(slices.Clip(s.stored), version)
	}
	return s.stored
}

// servedVersion returns a served version of a kind, or nil.
func servedVersion(registry *kinds.Registry, kind schema.GroupKind) *kinds.Kind {
	for _, k := range registry.Kinds() {
		if k.GroupKind() == kind {
			return k
		}
	}
	return nil
}

// as returns a record of the same object in the version of a table.
func (s *Server) as(t *table, r *record) (*record, error) {
	if r == nil || r.table == t {
		return r, nil
	}
	if r.other != nil {
		for _, form := range r.other.records {
			if form.table == t {
				return form, nil
			}
		}
	}
	content := runtime.DeepCopyJSON(r.contents(r.table))
	from := r.table.kind
	if current := t.kind.Versions.Of(from.Version); current != from {
		if from = current; from == nil {
			return nil, internal(fmt.Errorf(
				"request to convert CR from an invalid group/version: %s", r.table.kind.GroupVersion(),
			))
		}
		// the definition was replaced: its schema is the schema of a reader
		if err := from.Default(&unstructured.Unstructured{Object: content}); err != nil {
			return nil, internal(err)
		}
	}
	content, err := s.convert(from, t.kind, content)
	if err == nil {
		err = t.kind.Converted(content)
	}
	if err != nil && r.version > 0 {
		err = internal(fmt.Errorf("object not decodable revision=%d: %w", r.version, err))
	}
	if err != nil {
		return nil, err
	}
	form, err := r.formOf(t, content)
	if err == nil {
		if r.other == nil {
			r.other = &otherForms{}
		}
		r.other.records = append(r.other.records, form)
	}
	return form, err
}

// read is as for a request that reads one object.
func (s *Server) read(t *table, r *record) (*record, error) {
	form, err := s.as(t, r)
	if err != nil {
		return nil, apierrors.NewInternalError(t.corrupt(r.key, true, err))
	}
	return form, nil
}

// formOf returns a record of the same object with other content, in the version of a table.
func (r *record) formOf(t *table, content map[string]any) (*record, error) {
	form := *r
	form.table, form.other, form.content = t, nil, nil
	_, form.status = content["status"]
	form.status = form.status && t.goType != nil
	var err error
	if form.object, err = t.parse(content); err != nil {
		return nil, err
	}
	t.kind.Normalize(form.object)
	return &form, nil
}

// show returns a record in the version of a table for those who cannot handle an error. If the conversion fails, the
// object is shown as if only its apiVersion had to be changed; see [Server.FailedConversion].
func (s *Server) show(t *table, r *record) *record {
	form, err := s.as(t, r)
	if err == nil {
		return form
	}
	if s.failedConversion == nil {
		s.failedConversion = err
	}
	content := runtime.DeepCopyJSON(r.contents(r.table))
	content["apiVersion"] = t.kind.GroupVersion().String()
	if err := t.kind.Converted(content); err == nil {
		if form, err = r.formOf(t, content); err == nil {
			return form
		}
	}
	return &record{table: t, key: r.key, object: t.empty(), uid: r.uid, version: r.version}
}

// Shown returns the version of a kind that its events have, or the kind if it is not served.
func (s *Server) Shown(kind schema.GroupVersionKind) schema.GroupVersionKind {
	if t, err := s.table(kind); err == nil {
		return t.shown.kind.GroupVersionKind
	}
	return kind
}

// FailedConversion returns the error of the first conversion that has failed where no request could return it: for
// events, Get or List.
func (s *Server) FailedConversion() error { return s.failedConversion }

// In returns an event as clients of a version see it, and reports whether the kind is a version of the kind of the
// event.
func (s *Server) In(kind schema.GroupVersionKind, e Event) (Event, bool) {
	if kind == e.Kind {
		return e, true
	}
	t := s.tables[kind]
	if t == nil || e.record.table.shelf != t.shelf {
		return e, false
	}
	e.Kind, e.Object = kind, s.show(t, e.record).object
	if e.before != nil {
		e.Old = s.show(t, e.before).object
	}
	return e, true
}

// toStorage returns the record of an object of another version than the version of the storage, as it is to be stored.
func (s *Server) toStorage(t *table, obj client.Object, status bool) (*record, error) {
	stored, err := s.as(t.storage, &record{table: t, object: obj, status: status})
	if err != nil {
		return nil, err
	}
	defaulted := stored.object.DeepCopyObject().(client.Object)
	if err := t.storage.kind.Default(defaulted); err != nil {
		return nil, err
	}
	// what is read has the defaults of the storage version
	if stored.other = (&otherForms{version: t}); !same(defaulted, stored.object) {
		stored.other.raw, stored.object, stored.content = stored.object, defaulted, nil
	}
	return stored, nil
}

// unchanged reports whether an object of a version is already stored: then a write of it changes nothing.
func (s *Server) unchanged(t *table, stored *record, obj client.Object, status bool) (bool, error) {
	if stored.table != t.storage {
		return false, nil
	}
	if t != t.storage {
		written, err := s.toStorage(t, obj, status)
		if err != nil {
			return false, err
		}
		obj, status = written.asWritten(), written.status
	}
	return status == stored.status && same(obj, stored.asWritten()), nil
}

// asWritten returns the object without the defaults that are set when it is read.
func (r *record) asWritten() client.Object {
	if r.other != nil && r.other.raw != nil {
		return r.other.raw
	}
	return r.object
}

// save stores an object of a version as the next version, and returns its record as a reader of the same version sees
// it.
func (s *Server) save(t *table, key client.ObjectKey, obj client.Object, req request) (*record, error) {
	if t == t.storage {
		return s.put(t, key, obj, req), nil
	}
	stored, err := s.toStorage(t, obj, req.status)
	if err != nil {
		return nil, err
	}
	req.written, req.status = stored.other, stored.status
	return s.as(t, s.put(t.storage, key, stored.object, req))
}

// unsaved returns an object that a dry run does not store, as a reader sees it.
func (s *Server) unsaved(t *table, obj client.Object, status bool) (*record, error) {
	if t == t.storage {
		return &record{table: t, object: obj, status: status}, nil
	}
	stored, err := s.toStorage(t, obj, status)
	if err != nil {
		return nil, err
	}
	return s.as(t, stored)
}

// converter returns the function that converts objects of a kind with several versions for field managers. Like the
// conversion of a real server, it does not remove fields that the other version does not have, which makes an apply
// fail.
func (s *Server) converter(t *table) kinds.Converter {
	if !t.several() {
		return nil
	}
	return func(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
		from, to := t.kind.Versions.Of(obj.GroupVersionKind().Version), t.kind.Versions.Of(version)
		if from == nil || to == nil {
			return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s/%s", t.kind.Group, version)
		}
		content, err := s.convert(from, to, runtime.DeepCopyJSON(obj.Object))
		return &unstructured.Unstructured{Object: content}, err
	}
}
