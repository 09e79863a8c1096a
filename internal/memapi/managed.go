// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manage updates the managed fields of an object that replaces another one, if they are kept.
func (s *Server) manage(t *table, r *record, obj client.Object, req request) (client.Object, error) {
	if !r.managed || req.manager == "" {
		return obj, nil
	}
	updated, err := s.applier.Update(
		r.onWire(t), obj, req.manager, req.subresource, s.now(), s.converter(t),
	)
	if err != nil {
		return nil, internal(err)
	}
	obj.SetManagedFields(updated.GetManagedFields())
	return obj, nil
}

// onWire returns an object as a server stores it that has no Go types: custom objects as content, because their type
// cannot represent an absent status.
func (r *record) onWire(t *table) client.Object {
	if t.kind.Custom && t.goType != nil {
		return &unstructured.Unstructured{Object: r.contents(t)}
	}
	return r.object
}

// fromApplier converts the result of an applier to the stored type.
func (t *table) fromApplier(obj client.Object, err error) (client.Object, error) {
	var status apierrors.APIStatus
	switch {
	case err == nil && t.goType != nil && !t.unfit(obj):
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	case err != nil && !errors.As(err, &status):
		return nil, internal(err)
	}
	return obj, err
}

// withManagedFields returns a record of the same object with managed fields. They are reconstructed from the history
// when the object is applied for the first time.
func (s *Server) withManagedFields(t *table, r *record) (*record, error) {
	if r.managed {
		return r, nil
	}
	var fields []metav1.ManagedFieldsEntry
	var live client.Object
	for _, event := range s.history {
		if event.Key != r.key || event.record.table.shelf != t.shelf || event.Object.GetUID() != r.uid {
			continue
		}
		stored, before, err := s.forRequest(event)
		if err != nil {
			return nil, err
		}
		if before != nil {
			live = withFields(before, fields)
		}
		if event.request.manager != "" { // not a deletion
			written := stored
			if event.request.sent != nil {
				written = event.request.sent
			}
			updated, err := s.applier.Update(
				live, withFields(written, fields), event.request.manager, event.request.subresource, event.at, s.converter(t),
			)
			if err != nil {
				return nil, internal(err)
			}
			fields = updated.GetManagedFields()
		}
	}
	return r.withFields(fields), nil
}

// forRequest returns the objects of an event in the version of the request that has caused it.
func (s *Server) forRequest(event Event) (stored, before client.Object, err error) {
	t := event.record.table
	if w := event.request.written; w != nil {
		t = w.version
	}
	r, err := s.as(t, event.record)
	if err != nil {
		return nil, nil, err
	}
	if event.before == nil {
		return r.onWire(t), nil, nil
	}
	old, err := s.as(t, event.before)
	if err != nil {
		return nil, nil, err
	}
	return r.onWire(t), old.onWire(t), nil
}

// withFields returns a record of the same object with managed fields, which are kept from now on.
func (r *record) withFields(fields []metav1.ManagedFieldsEntry) *record {
	managed := *r
	managed.managed, managed.content, managed.other, managed.object = true, nil, nil, withFields(r.object, fields)
	if r.other != nil && r.other.raw != nil {
		managed.other = &otherForms{version: r.other.version, raw: withFields(r.other.raw, fields)}
	}
	return &managed
}

// track sets the managed fields of an object that is created.
func (s *Server) track(t *table, obj client.Object, req *request) error {
	written := req.sent
	if written == nil {
		written = (&record{table: t, object: obj, status: req.status}).onWire(t)
	}
	updated, err := s.applier.Update(
		nil, withFields(written, nil), req.manager, req.subresource, s.now(), s.converter(t),
	)
	if err != nil {
		return internal(err)
	}
	obj.SetManagedFields(updated.GetManagedFields())
	req.managed = true
	return nil
}

// movesFields reports whether an update that changes nothing else changes the field managers of an object whose managed
// fields are not kept. That creates a version too. It is expensive to determine, but sending the stored object never
// changes managers. The exception is the scale subresource: it has fewer fields than the object, so it adds an entry
// that the next write of another type removes.
func (s *Server) movesFields(t *table, r *record, req request) (bool, error) {
	if r.managed || req.sent == nil || req.manager == "" {
		return false, nil
	}
	stored := r.object
	if t.unfit(req.sent) {
		stored = r.onWire(t)
	}
	if !r.scaled && req.subresource != scaleSubresource && same(req.sent, stored) {
		return false, nil
	}
	managed, err := s.withManagedFields(t, r)
	if err != nil {
		return false, err
	}
	fields := managed.object.GetManagedFields()
	updated, err := s.applier.Update(
		managed.onWire(t), withFields(req.sent, fields), req.manager, req.subresource, s.now(), s.converter(t),
	)
	if err != nil {
		return false, internal(err)
	}
	return !sameButTimes(updated.GetManagedFields(), fields), nil
}

// withFields returns an object with managed fields.
func withFields(obj client.Object, fields []metav1.ManagedFieldsEntry) client.Object {
	obj = shallowCopy(obj)
	obj.SetManagedFields(fields)
	return obj
}

// ignoreManagedTimes keeps the old managed fields if only their times differ.
func ignoreManagedTimes(obj, old client.Object) {
	fields, oldFields := obj.GetManagedFields(), old.GetManagedFields()
	if !sameButTimes(fields, oldFields) {
		return
	}
	obj.SetManagedFields(oldFields)
	if !same(obj, old) {
		obj.SetManagedFields(fields)
	}
}

func sameButTimes(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		x.Time = y.Time
		return equality.Semantic.DeepEqual(x, y)
	})
}
