// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manage gives an object that replaces another the managed fields it has then, if they are kept.
func (s *Server) manage(t *table, r *record, obj client.Object, req request) (client.Object, error) {
	if !r.managed || req.manager == "" {
		return obj, nil
	}
	return t.fromApplier(s.applier.Update(r.object, obj, req.manager, req.subresource, s.now()))
}

// fromApplier returns what an applier has returned as it is stored.
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

// withManagedFields returns a record of the same object that has managed fields: they are made up for from the history, when something is applied to it
// for the first time.
func (s *Server) withManagedFields(t *table, r *record) (*record, error) {
	if r.managed {
		return r, nil
	}
	var fields []metav1.ManagedFieldsEntry
	var live client.Object
	for _, event := range s.history {
		if event.Key != r.key || event.Kind != t.kind.GroupVersionKind || event.Object.GetUID() != r.uid {
			continue
		}
		stored := event.Object
		if t.kind.Custom && t.goType != nil { // which does not tell an empty status from none
			stored = &unstructured.Unstructured{Object: event.record.contents(t)}
		}
		if event.request.manager != "" { // and not a deletion
			written := stored
			if event.request.sent != nil {
				written = event.request.sent
			}
			updated, err := s.applier.Update(live, withFields(written, fields), event.request.manager, event.request.subresource, event.at)
			if err != nil {
				return nil, internal(err)
			}
			fields = updated.GetManagedFields()
		}
		live = withFields(stored, fields)
	}
	managed := *r
	managed.managed, managed.content, managed.object = true, nil, withFields(r.object, fields)
	return &managed, nil
}

// withFields returns an object with managed fields.
func withFields(obj client.Object, fields []metav1.ManagedFieldsEntry) client.Object {
	obj = shallowCopy(obj)
	obj.SetManagedFields(fields)
	return obj
}

// ignoreManagedTimes keeps the managed fields of the old object if nothing but their times differs.
func ignoreManagedTimes(obj, old client.Object) {
	fields, oldFields := obj.GetManagedFields(), old.GetManagedFields()
	if len(fields) != len(oldFields) {
		return
	}
	for i := range fields {
		entry := fields[i]
		entry.Time = oldFields[i].Time
		if !equality.Semantic.DeepEqual(entry, oldFields[i]) {
			return
		}
	}
	obj.SetManagedFields(oldFields)
	if !same(obj, old) {
		obj.SetManagedFields(fields)
	}
}
