// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manage gives an object that replaces another the managed fields it has then, if they are kept.
func (s *Server) manage(t *table, r *record, obj client.Object, req request) (client.Object, error) {
	if !r.managed {
		return obj, nil
	}
	return t.fromApplier(s.applier.Update(r.object, obj, req.manager, req.subresource, s.now()))
}

// fromApplier returns what an applier has returned as it is stored.
func (t *table) fromApplier(obj client.Object, err error) (client.Object, error) {
	var status apierrors.APIStatus
	switch {
	case err == nil && t.goType != nil:
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
	var live client.Object
	for _, event := range s.history {
		if event.Key != r.key || event.Kind != t.kind.GroupVersionKind || event.Object.GetUID() != r.uid || event.Type == watch.Deleted || event.request.manager == "" {
			continue
		}
		updated := shallowCopy(event.Object)
		if live != nil {
			updated.SetManagedFields(live.GetManagedFields())
		}
		var err error
		if live, err = s.applier.Update(live, updated, event.request.manager, event.request.subresource, event.Object.GetCreationTimestamp().Time); err != nil {
			return nil, err
		}
	}
	managed := *r
	managed.managed, managed.content = true, nil
	if live != nil {
		managed.object = shallowCopy(r.object)
		managed.object.SetManagedFields(live.GetManagedFields())
	}
	return &managed, nil
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
	before := obj.GetManagedFields()
	obj.SetManagedFields(oldFields)
	if !equality.Semantic.DeepEqual(obj, old) {
		obj.SetManagedFields(before)
	}
}
