// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"maps"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const statusSubresource = "status"

// update replaces an object by the decoded object that change returns for the current record. The result is the stored
// object, or the object that was sent if the update removed it. It must not be changed.
func (s *Server) update(
	t *table, key client.ObjectKey, uid types.UID, req request, change func(*record) (client.Object, error),
) (*record, error) {
	// Store.Update: Storage.GuaranteedUpdate reads the object, and checks the preconditions, which are the preconditions
	// of rest.UpdatedObjectInfo: Preconditions.Check in storage/interfaces.go
	r := t.objects[key]
	if r == nil {
		return nil, t.notFound(key.Name)
	}
	if uid != "" && uid != r.uid {
		return nil, t.otherUID(key, uid, r.uid, req.dryRun)
	}
	before, original := r, req
	r, err := s.as(t, r)
	if err != nil {
		return nil, err
	}
	if req.managed {
		if r, err = s.withManagedFields(t, r); err != nil {
			return nil, err
		}
	}
	// Store.Update: objInfo.UpdatedObject calls the transformers of handlers/update.go UpdateResource or of
	// handlers/patch.go patchResource, the mutating admission last
	obj, err := change(r)
	if err != nil {
		return nil, err
	}
	if obj, err = s.mutate(admissionv1.Update, t, obj, r, req); err != nil {
		return nil, err
	}
	if req.applied {
		req.lost = t.tidy(obj)
	}
	// Store.Update: AllowUnconditionalUpdate, and the comparison of resource versions
	if err := t.matchVersion(obj, r); err != nil {
		return nil, err
	}
	if req.managed = r.managed; !req.managed {
		obj.SetManagedFields(nil)
		if s.applier != nil {
			req.sent = shallowCopy(obj)
		}
	}
	old := r.object
	if t.unfit(obj) {
		old = &unstructured.Unstructured{Object: r.contents(t)}
	}
	// Store.Update: rest.BeforeUpdate, then updateValidation is the validating admission
	if err := t.prepareUpdate(obj, old, req); err != nil {
		return nil, err
	}
	if err := s.validate(admissionv1.Update, t, obj, r, req); err != nil {
		return nil, err
	}
	if t.objects[key] != before { // admission has written it
		return s.update(t, key, uid, original, change)
	}
	return s.store(t, before, r, obj, req)
}

// store stores an object that was prepared in place of a record. The record before is the stored one, which lacks the
// managed fields of r if these were reconstructed.
func (s *Server) store(t *table, before, r *record, obj client.Object, req request) (_ *record, err error) {
	req.status = t.hasStatusAfter(r, obj, req)
	if obj, err = t.fit(obj); err != nil {
		return nil, err
	}
	// Store.Update: ShouldDeleteDuringUpdate, then Store.deleteWithoutFinalizers
	if emptied(t, obj, r.object) {
		if !req.dryRun {
			s.remove(t, before, req.client)
		}
		last := &record{table: t, object: obj, status: req.status}
		if len(req.lost) > 0 { // the object was not stored
			maps.Copy(last.contents(t)["metadata"].(map[string]any), req.lost)
		}
		return last, nil
	}
	if req.managed && len(req.lost) == 0 {
		ignoreManagedTimes(obj, r.object)
	}
	if req.dryRun {
		return s.unsaved(t, obj, req.status)
	}
	obj.SetSelfLink("")
	if len(req.lost) > 0 || r.loose {
		return s.save(t, r.key, obj, req)
	}
	// GuaranteedUpdate in storage/etcd3/store.go does not write an object whose encoded form does not change
	stored := before
	if r.managed && !before.managed {
		stored = before.withFields(r.object.GetManagedFields())
	}
	if unchanged, err := s.unchanged(t, stored, obj, req.status); err != nil {
		return nil, err
	} else if unchanged {
		if stored != before {
			t.replace(stored)
		}
		if moved, err := s.movesFields(t, r, req); !moved {
			return r, err
		}
	}
	return s.save(t, r.key, obj, req)
}

// hasStatusAfter reports whether an object has a status after a request has changed it to obj.
func (t *table) hasStatusAfter(r *record, obj client.Object, req request) bool {
	switch {
	case req.applied:
		return r.status || t.hasStatus(obj, req)
	case !t.kind.Status || req.subresource == statusSubresource:
		return t.hasStatus(obj, req)
	}
	return r.status
}

// parseVersion returns the resource version of an object, or 0 if it has none.
func parseVersion(obj client.Object) (uint64, error) {
	version := obj.GetResourceVersion()
	if version == "" {
		return 0, nil
	}
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, internal(err)
	}
	return number, nil
}

// matchVersion compares the resource version of an update with the stored one, and sets it if the kind does not require
// one.
func (t *table) matchVersion(obj client.Object, r *record) error {
	number, err := parseVersion(obj)
	switch {
	case err != nil:
		return err
	case number == uint64(r.version):
	case number == 0 && t.kind.UnconditionalUpdate:
		obj.SetResourceVersion(strconv.FormatInt(r.version, 10))
	case number == 0:
		kind := schema.GroupKind{Group: t.resource.Group, Kind: t.resource.Resource}
		return apierrors.NewInvalid(kind, r.key.Name, field.ErrorList{
			field.Invalid(metadataPath.Child("resourceVersion"), number, "must be specified for an update"),
		})
	default:
		return t.stale(r.key.Name)
	}
	return nil
}

// prepareUpdate prepares an object for storing in place of the old one, and validates it, in the order of
// rest.BeforeUpdate.
func (t *table) prepareUpdate(obj, old client.Object, req request) error {
	if err := matchNamespace(t, old.GetNamespace(), obj); err != nil {
		return err
	}
	obj.SetGeneration(old.GetGeneration())
	switch {
	case req.subresource == statusSubresource:
		t.kind.PrepareForStatusUpdate(obj, old)
	case req.dryRun:
		sent := shallowCopy(obj)
		t.kind.PrepareForUpdate(obj, old)
		t.kind.ShowDryRun(obj, sent, old)
	default:
		t.kind.PrepareForUpdate(obj, old)
	}
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if deleted := old.GetDeletionTimestamp(); deleted != nil {
		obj.SetDeletionTimestamp(deleted)
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(grace)
	}
	return t.validateUpdate(obj, old, req)
}

// emptied reports whether an update removes the last finalizer of an object that is being deleted:
// ShouldDeleteDuringUpdate in registry/generic/registry/store.go.
func emptied(t *table, obj, old client.Object) bool {
	if old.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 {
		return false
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && *grace != 0 {
		return false
	}
	return !isNamespace(t) || len(namespaceFinalizers(obj)) == 0
}

// matchName refuses an object with another name than the request: handlers/rest.go checkName.
func matchName(key client.ObjectKey, obj client.Object) error {
	switch name := obj.GetName(); name {
	case key.Name:
		return nil
	case "":
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", key.Name),
		)
	default:
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, key.Name),
		)
	}
}
