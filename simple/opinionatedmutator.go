// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"time"

	"trueup.dev/app"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/resource"
)

var _ KindMutator = (*OpinionatedMutator)(nil)

// OpinionatedMutator is a [KindMutator] that writes the annotations createdBy, updatedBy and updateTimestamp, with the
// names of users and the time in RFC 3339. Users cannot set them.
//
// Requests that change only finalizers do not count as updates, and neither do requests that change nothing. Otherwise
// each write of a controller would be a change, which triggers the next one.
type OpinionatedMutator struct {
	// Mutator is called first. Optional.
	Mutator KindMutator
	// Prefix of the annotations. Defaults to `grafana.com/`.
	Prefix string
}

// Mutate calls the Mutator and then sets the annotations.
func (m *OpinionatedMutator) Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error) {
	object := req.Object
	if !nilcheck.IsNil(m.Mutator) {
		response, err := m.Mutator.Mutate(ctx, req)
		if err != nil {
			return nil, err
		}
		if response != nil && !nilcheck.IsNil(response.UpdatedObject) {
			object = response.UpdatedObject
		}
	}
	if nilcheck.IsNil(object) {
		return &app.MutatingResponse{}, nil
	}
	prefix := cmp.Or(m.Prefix, resource.AnnotationPrefix)
	createdBy, updatedBy, updated := prefix+"createdBy", prefix+"updatedBy", prefix+"updateTimestamp"
	stamps := map[string]string{}
	switch {
	case nilcheck.IsNil(req.OldObject):
		stamps[createdBy], stamps[updated] = req.UserInfo.Username, now()
	default:
		for _, key := range []string{createdBy, updatedBy, updated} {
			if value, ok := req.OldObject.GetAnnotations()[key]; ok {
				stamps[key] = value
			}
		}
		if isUpdate(req.OldObject, object, createdBy, updatedBy, updated) {
			stamps[updatedBy], stamps[updated] = req.UserInfo.Username, now()
		}
	}
	annotations := without(object.GetAnnotations(), createdBy, updatedBy, updated)
	maps.Copy(annotations, stamps)
	object.SetAnnotations(annotations)
	return &app.MutatingResponse{UpdatedObject: object}, nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// isUpdate reports whether objects differ in more than what the API server or a finalizer changes.
func isUpdate(old, object resource.Object, keys ...string) bool {
	relevant := func(object resource.Object) resource.Object {
		object = object.DeepCopyObject().(resource.Object)
		object.SetAnnotations(without(object.GetAnnotations(), keys...))
		object.SetFinalizers(nil)
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		object.SetGeneration(0)
		object.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
		return object
	}
	return !reflect.DeepEqual(relevant(old), relevant(object))
}

// without returns a copy of annotations without keys.
func without(annotations map[string]string, keys ...string) map[string]string {
	copied := map[string]string{}
	maps.Copy(copied, annotations)
	for _, key := range keys {
		delete(copied, key)
	}
	return copied
}
