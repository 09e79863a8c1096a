// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delete deletes an object for a client, or marks it for deletion.
func (s *Server) delete(t *table, key client.ObjectKey, by string, opts *metav1.DeleteOptions) error {
	// handlers/delete.go DeleteResource
	if errs := metavalidation.ValidateDeleteOptions(opts); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	// rest.AdmissionToValidateObjectDeleteFunc: the admission of namespaces is its first part
	if err := t.admitDelete(key); err != nil {
		return err
	}
	r := t.objects[key]
	if r == nil {
		return t.notFound(key.Name)
	}
	r, err := s.read(t, r)
	if err != nil {
		return err
	}
	req := request{client: by, dryRun: len(opts.DryRun) > 0}
	// Store.Delete calls deleteValidation only after rest.BeforeDelete. The order matters if both refuse.
	if err := s.validate(admissionv1.Delete, t, nil, r, req); err != nil {
		return err
	}
	if r = t.objects[key]; r == nil { // admission may have deleted it
		return t.notFound(key.Name)
	}
	if r, err = s.as(t, r); err != nil {
		return err
	}
	if isNamespace(t) {
		if done, err := s.terminate(t, r, by, opts); done || err != nil {
			return err
		}
	}
	if done, err := s.terminateDefinition(t, r, by, opts); done || err != nil {
		return err
	}
	// Store.Delete: rest.BeforeDelete checks the preconditions and sets the grace period
	if err := t.checkPreconditions(r, opts.Preconditions); err != nil {
		return err
	}

	obj := shallowCopy(r.object)
	graceful, pending := s.beGraceful(t, obj, opts)
	if pending {
		return nil
	}
	// Store.updateForGracefulDeletionAndFinalizers: deletionFinalizersForGarbageCollection and markAsDeleting
	finalizers := t.deletionFinalizers(obj, opts)
	obj.SetFinalizers(finalizers)
	if !graceful && len(finalizers) > 0 {
		markDeleting(obj, s.now())
	}
	// a graceful deletion with a grace period of zero is stored before the object is removed
	if (graceful || len(finalizers) > 0) && !req.dryRun && (r.loose || !sameDeletion(obj, r.object)) {
		if r, err = s.save(t, key, obj, r.request(by)); err != nil {
			return err
		}
	}
	if p := opts.Preconditions; p != nil && p.ResourceVersion != nil && len(r.object.GetFinalizers()) > 0 &&
		len(finalizers) == 0 && !graceful && !req.dryRun {
		// at this point, a real server no longer has the version from before it decided not to wait for the garbage
		// collector
		return t.failedPrecondition(key, "ResourceVersion", "", r.object.GetResourceVersion(), false)
	}
	if len(finalizers) > 0 || graceful && *obj.GetDeletionGracePeriodSeconds() > 0 || req.dryRun {
		return nil
	}
	// Store.Delete: Storage.Delete
	s.remove(t, t.objects[key], by)
	return nil
}

// sameDeletion reports whether an object was already marked for deletion in the same way.
func sameDeletion(obj, old client.Object) bool {
	a, b := obj.GetDeletionGracePeriodSeconds(), old.GetDeletionGracePeriodSeconds()
	return old.GetDeletionTimestamp() != nil && obj.GetDeletionTimestamp().Equal(old.GetDeletionTimestamp()) &&
		a != nil && b != nil && *a == *b && slices.Equal(obj.GetFinalizers(), old.GetFinalizers())
}

// checkPreconditions returns a conflict if an object does not match the preconditions of its deletion.
func (t *table) checkPreconditions(r *record, preconditions *metav1.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	// real servers use the kind as resource in these messages
	resource := schema.GroupResource{Group: t.kind.Group, Resource: t.kind.Kind}
	if uid := preconditions.UID; uid != nil && *uid != r.uid {
		return apierrors.NewConflict(resource, r.key.Name, fmt.Errorf("the UID in the precondition (%s) does not match the "+
			"UID in record (%s). "+
			"The object might have been deleted and then recreated", *uid, r.uid))
	}
	if version := preconditions.ResourceVersion; version != nil && *version != r.object.GetResourceVersion() {
		return apierrors.NewConflict(resource, r.key.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does "+
			"not match the ResourceVersion in record (%s). "+
			"The object might have been modified", *version, r.object.GetResourceVersion()))
	}
	return nil
}

// beGraceful is the second half of rest.BeforeDelete. It sets the grace period of an object whose kind has one. It
// reports whether the deletion is graceful, and whether the object already terminates with no longer grace period.
func (s *Server) beGraceful(t *table, obj client.Object, opts *metav1.DeleteOptions) (graceful, pending bool) {
	wanted := opts.GracePeriodSeconds
	if wanted != nil && *wanted < 0 {
		wanted = new(int64(1))
	}
	if !t.kind.Graceful {
		return false, false
	}
	if deleted := obj.GetDeletionTimestamp(); deleted != nil {
		left := obj.GetDeletionGracePeriodSeconds()
		switch {
		case left == nil || *left == 0:
			return false, false
		case wanted == nil || *wanted >= *left:
			return false, true
		}
		at, period := deleted.Add(time.Duration(*wanted-*left)*time.Second), *wanted
		if now := s.now(); at.Before(now) {
			if at = now; period != 0 {
				period = 1
			}
		}
		obj.SetDeletionTimestamp(new(seconds(at)))
		obj.SetDeletionGracePeriodSeconds(&period)
		return true, false
	}
	period := gracePeriod(obj, wanted)
	obj.SetDeletionTimestamp(new(seconds(s.now().Add(time.Duration(period) * time.Second))))
	obj.SetDeletionGracePeriodSeconds(&period)
	if generation := obj.GetGeneration(); generation > 0 {
		obj.SetGeneration(generation + 1)
	}
	return true, false
}

// markDeleting marks an object that has finalizers for deletion.
func markDeleting(obj client.Object, now time.Time) {
	deleted := obj.GetDeletionTimestamp()
	if generation := obj.GetGeneration(); deleted == nil && generation > 0 {
		obj.SetGeneration(generation + 1)
	}
	if deleted == nil || deleted.After(now) {
		obj.SetDeletionTimestamp(new(seconds(now)))
	}
	obj.SetDeletionGracePeriodSeconds(new(int64(0)))
}

// deletionFinalizers returns the finalizers of an object that is deleted, including those for the garbage collector.
func (t *table) deletionFinalizers(obj client.Object, opts *metav1.DeleteOptions) []string {
	found := obj.GetFinalizers()
	orphan, foreground := t.propagation(found, opts)
	var finalizers []string
	for _, f := range found {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			finalizers = append(finalizers, f)
		}
	}
	if orphan {
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	if len(found) == len(finalizers) &&
		!slices.ContainsFunc(found, func(f string) bool { return !slices.Contains(finalizers, f) }) {
		return found
	}
	return finalizers
}

// propagation returns what happens to the dependents of an object: shouldOrphanDependents and
// shouldDeleteDependentsInForeground in registry/generic/registry/store.go. Options take precedence over finalizers,
// and those over the default of the kind.
func (t *table) propagation(finalizers []string, opts *metav1.DeleteOptions) (orphan, foreground bool) {
	if t.kind.Kind == "Event" {
		return false, false // its kind has no dependents
	}
	if opts.OrphanDependents != nil { //nolint:staticcheck // deprecated, but still supported
		return *opts.OrphanDependents, false //nolint:staticcheck // as above
	}
	if policy := opts.PropagationPolicy; policy != nil {
		return *policy == metav1.DeletePropagationOrphan, *policy == metav1.DeletePropagationForeground
	}
	for _, f := range finalizers {
		switch f {
		case metav1.FinalizerOrphanDependents:
			return true, false
		case metav1.FinalizerDeleteDependents:
			return false, true
		}
	}
	return t.kind.Orphans, false
}
