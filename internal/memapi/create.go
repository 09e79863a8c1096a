// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"errors"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// generateAttempts is how often a server generates another name if an object with the name exists.
const generateAttempts = 8

// request is the common part of all requests that write.
type request struct {
	client, manager, subresource string
	dryRun                       bool
	applied                      bool           // whether it is an apply
	managed                      bool           // whether the object already has its new managed fields
	status                       bool           // whether the object has a status, see record
	lost                         map[string]any // see tidy
	// patchedKind is the kind that a patch gives a custom object. Nil for requests other than patches.
	patchedKind *schema.GroupVersionKind
	// the object before the server adds anything but defaults, for managed fields; nil if the server adds nothing
	sent client.Object
	// written is set for a request for another version than the version of the storage.
	written *otherForms
}

// create stores a decoded object, and returns its record. The result must not be changed.
func (s *Server) create(t *table, namespace string, obj client.Object, req request) (*record, error) {
	if req.applied {
		req.lost = t.tidy(obj)
	}
	// handlers/create.go createHandler: rest.WipeObjectMetaSystemFields, then
	// rest.EnsureObjectNamespaceMatchesRequestNamespace, dedupOwnerReferencesAndAddWarning and the mutating admission,
	// which includes Lifecycle.Admit in admission/plugin/namespace/lifecycle/admission.go
	wipeSystemFields(obj)
	if err := matchNamespace(t, namespace, obj); err != nil {
		return nil, err
	}
	dropDuplicateOwners(obj)
	if err := s.admitToNamespace(t, obj); err != nil {
		return nil, err
	}
	obj, err := s.mutate(admissionv1.Create, t, obj, nil, req)
	if err != nil {
		return nil, err
	}
	// Store.create: rest.FillObjectMetaSystemFields and GenerateName, which Store.createWithGenerateNameRetry repeats
	obj, taken := s.named(t, obj)
	key := client.ObjectKeyFromObject(obj)
	obj.SetUID(s.newUID(t, key))
	obj.SetCreationTimestamp(seconds(s.now()))
	if !req.managed {
		obj.SetManagedFields(nil)
	}
	sent := shallowCopy(obj)
	if s.applier != nil && !req.managed && req.sent == nil {
		req.sent = sent
	}
	// Store.create: rest.BeforeCreate prepares and validates, then createValidation is the validating admission
	if req.subresource == statusSubresource {
		t.kind.PrepareForCreateByStatus(obj)
	} else {
		t.kind.PrepareForCreate(obj)
	}
	if req.dryRun {
		t.kind.ShowDryRun(obj, sent, nil)
	}
	if err = t.validateCreate(obj); err == nil {
		err = s.validate(admissionv1.Create, t, obj, nil, req)
	}
	if err != nil {
		return nil, err
	}
	if taken == nil {
		taken = t.objects[key] // admission may have created it
	}
	req.status = !t.kind.Status && t.hasStatus(obj, req)
	if obj, err = t.fit(obj); err != nil {
		return nil, err
	}
	if s.tracks && !req.managed && req.manager != "" {
		if err := s.track(t, obj, &req); err != nil {
			return nil, err
		}
	}
	// Store.create: Storage.Create, which is Create in storage/etcd3/store.go, or DryRunnableStorage.Create in
	// registry/generic/registry/dryrun.go
	if !req.dryRun {
		if version, err := parseVersion(obj); err == nil && version != 0 {
			return nil, internal(errors.New("resourceVersion should not be set on objects to be created"))
		}
	}
	if taken != nil {
		return nil, alreadyExists(t, obj, taken)
	}
	if req.dryRun {
		t.used(key) // the UID is not used again
		return s.unsaved(t, obj, req.status)
	}
	return s.save(t, key, obj, req)
}

// named returns an object with a generated name, if it needs one, and the existing object of that name.
func (s *Server) named(t *table, obj client.Object) (_ client.Object, existing *record) {
	key := client.ObjectKeyFromObject(obj)
	prefix := obj.GetGenerateName()
	if key.Name != "" || prefix == "" {
		return obj, t.objects[key]
	}
	for range generateAttempts {
		key.Name = s.generateName(prefix)
		if existing = t.objects[key]; existing == nil {
			break
		}
	}
	obj = obj.DeepCopyObject().(client.Object) // defaults may share values with the given object
	obj.SetName(key.Name)
	return obj, existing
}

// createByUpdate creates an object for an update of an object that does not exist. Its resource version is ignored. It
// is the branch of Store.Update for existingResourceVersion == 0.
func (s *Server) createByUpdate(t *table, namespace string, obj client.Object, req request) (*record, error) {
	if err := s.admitToNamespace(t, obj); err != nil {
		return nil, err
	}
	if _, err := parseVersion(obj); err != nil {
		return nil, err
	}
	if !req.managed {
		req.sent = shallowCopy(obj) // including fields that create removes
	}
	if !req.dryRun { // a dry run returns it
		obj.SetResourceVersion("")
	}
	return s.create(t, namespace, obj, req)
}

// alreadyExists is the error of Store.create and rest.CheckGeneratedNameError.
func alreadyExists(t *table, obj client.Object, taken *record) error {
	err := apierrors.NewAlreadyExists(t.resource, obj.GetName())
	if obj.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(t.resource, obj.GetName(), 1)
	}
	if taken.object.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// wipeSystemFields removes the metadata that only a server sets.
func wipeSystemFields(obj client.Object) {
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetUID("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
}

// matchNamespace sets the namespace of an object to the namespace of the request.
func matchNamespace(t *table, namespace string, obj client.Object) error {
	if !t.kind.Namespaced {
		namespace = ""
	}
	switch found := obj.GetNamespace(); {
	case found == namespace:
	case found == "", namespace == "":
		obj.SetNamespace(namespace)
	default:
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request",
		)
	}
	return nil
}

// dropDuplicateOwners removes duplicate owner references: handlers/rest.go dedupOwnerReferences.
func dropDuplicateOwners(obj client.Object) {
	refs := obj.GetOwnerReferences()
	if len(refs) < 2 {
		return
	}
	var kept []metav1.OwnerReference
	seen := map[types.UID]bool{}
next:
	for _, ref := range refs {
		if seen[ref.UID] {
			for _, other := range kept {
				if equality.Semantic.DeepEqual(other, ref) {
					continue next
				}
			}
		}
		seen[ref.UID] = true
		kept = append(kept, ref)
	}
	if len(kept) < len(refs) {
		obj.SetOwnerReferences(kept)
	}
}

// seconds returns a time as it is encoded on the wire.
func seconds(now time.Time) metav1.Time {
	return metav1.Unix(now.Unix(), 0)
}
