// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create creates the given objects of a case.
func (a *API) create(ctx context.Context, given *givenObjects) error {
	for _, name := range given.namespaces {
		if err := a.ensureNamespace(ctx, name); err != nil {
			return err
		}
	}
	var errs []error
	for _, entry := range given.objects {
		err := a.createGiven(ctx, entry)
		if reason, ok := errors.AsType[*SkipError](err); ok {
			return skipf("%s: %s", entry.origin, reason)
		} else if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", entry.origin, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	// deleted last, because nothing can be created in a namespace that is being deleted
	for _, entry := range given.objects {
		if entry.object.GetDeletionTimestamp() == nil {
			continue
		}
		if err := a.deleteGiven(ctx, entry); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", entry.origin, err))
		}
	}
	return errors.Join(errs...)
}

// createGiven creates an object and its status.
func (a *API) createGiven(ctx context.Context, entry *givenObject) error {
	sent := entry.object.DeepCopy()
	a.lock.Lock()
	foreign := a.hideOwners(sent)
	a.lock.Unlock()
	for _, field := range []string{
		"resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
		"selfLink",
	} {
		unstructured.RemoveNestedField(sent.Object, "metadata", field)
	}
	live, borrowed, err := a.post(ctx, entry.id, sent)
	if err != nil {
		return err
	}
	version := entry.object.GetResourceVersion()
	if version == "" {
		version = givenVersion
	}
	if a.realistic && entry.object.GetGeneration() == 0 {
		entry.object.SetGeneration(live.GetGeneration())
	}
	rec := newRecord(entry.id, entry.object, live, version)
	rec.readerOnly, rec.owners, rec.foreign = entry.readerOnly, entry.object.GetOwnerReferences(), foreign
	rec.borrowed = borrowed
	a.add(rec)
	if isNamespace(rec.id) && !borrowed {
		if err := a.equipNamespace(ctx, rec.id.name); err != nil {
			return err
		}
	}
	if err := a.giveFieldOwners(ctx, entry, live); err != nil {
		return err
	}
	if err := a.giveStatus(ctx, entry, live); err != nil {
		return err
	}
	rec.versions[0].real = live.GetResourceVersion()
	a.settle(rec, entry.object.Object, live)
	return nil
}

// post creates an object. An existing object is replaced if an earlier case created it. An existing namespace is
// borrowed.
func (a *API) post(
	ctx context.Context, id objectID, sent *unstructured.Unstructured,
) (live *unstructured.Unstructured, borrowed bool, err error) {
	err = await(ctx, func() (bool, error) {
		live = sent.DeepCopy()
		err := createReal(
			ctx, a.real, live, client.FieldOwner(manager), client.FieldValidation(metav1.FieldValidationStrict),
		)
		switch {
		case err == nil:
			return true, nil
		case !apierrs.IsAlreadyExists(err):
			return false, fmt.Errorf("the API refuses %s: %w", id, err)
		case isNamespace(id):
			ours, err := a.takeNamespace(ctx, sent, live)
			borrowed = !ours
			return err == nil, client.IgnoreNotFound(err)
		case !a.host.namespaces[id.namespace]:
			return false, fmt.Errorf("%s already exists and was not created by a case: "+
				"delete it if an interrupted run has left it", id)
		}
		// an interrupted run has left it, or a controller creates it in each namespace, and will create it again: it is
		// replaced in place if possible
		return a.replace(ctx, sent, live)
	})
	if err != nil {
		return nil, false, err
	}
	if borrowed &&
		(!contains(live.GetLabels(), sent.GetLabels()) || !contains(live.GetAnnotations(), sent.GetAnnotations())) {
		return nil, false, skipf("%s already exists, with other labels or annotations than the given one", id)
	}
	return live, borrowed, nil
}

// replace makes an existing object equal to an object, or removes it if that is not possible.
func (a *API) replace(ctx context.Context, sent, live *unstructured.Unstructured) (done bool, err error) {
	old := newUnstructured(sent.GroupVersionKind(), sent.GetNamespace(), sent.GetName())
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(old), old); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if old.GetDeletionTimestamp() == nil {
		sent.DeepCopyInto(live)
		live.SetResourceVersion(old.GetResourceVersion())
		if a.real.Update(ctx, live, client.FieldOwner(manager)) == nil {
			return true, nil
		}
	}
	return false, removeFrom(ctx, a.client, old)
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if other, ok := all[key]; !ok || other != value {
			return false
		}
	}
	return true
}

// giveFieldOwners replaces the managed fields of an object by the given ones: its creation has made this package the
// owner.
func (a *API) giveFieldOwners(ctx context.Context, entry *givenObject, live *unstructured.Unstructured) error {
	given := entry.object.GetManagedFields()
	if len(given) == 0 {
		return nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": live.GetUID()},
		{"op": "replace", "path": "/metadata/managedFields", "value": given},
	})
	if err != nil {
		return err
	}
	written := newUnstructured(live.GroupVersionKind(), live.GetNamespace(), live.GetName())
	err = a.real.Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(manager))
	if err != nil {
		return fmt.Errorf("the API refuses the managed fields of %s: %w", entry.id, err)
	}
	live.SetResourceVersion(written.GetResourceVersion())
	live.SetManagedFields(written.GetManagedFields())
	return nil
}

// giveStatus writes the given status of an object that was created without it.
func (a *API) giveStatus(ctx context.Context, entry *givenObject, live *unstructured.Unstructured) error {
	given, _ := entry.object.Object["status"].(map[string]any)
	status, _ := live.Object["status"].(map[string]any)
	merged := overlay(status, given)
	if equality.Semantic.DeepEqual(withoutEmpty(status), withoutEmpty(merged)) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.GetUID()}, "status": given})
	if err != nil {
		return err
	}
	written := newUnstructured(live.GroupVersionKind(), live.GetNamespace(), live.GetName())
	err = a.real.SubResource("status").Patch(ctx, written, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(manager), client.FieldValidation(metav1.FieldValidationStrict))
	if apierrs.IsNotFound(err) {
		// the status is not a subresource and was sent with the other fields
		return nil
	} else if err != nil {
		return fmt.Errorf("the API refuses the status of %s: %w", entry.id, err)
	}
	// not the returned object, because a controller may have written to it, too
	live.Object["status"] = merged
	live.SetResourceVersion(written.GetResourceVersion())
	live.SetManagedFields(written.GetManagedFields())
	return nil
}

// deleteGiven deletes an object that has finalizers.
func (a *API) deleteGiven(ctx context.Context, entry *givenObject) error {
	rec := a.find(entry.id)
	if err := a.real.Delete(
		ctx, a.blank(rec), client.Preconditions{UID: &rec.uid}, client.PropagationPolicy(metav1.DeletePropagationBackground),
	); err != nil {
		return fmt.Errorf("the API refuses to delete %s: %w", rec.id, err)
	}
	live := a.blank(rec)
	if err := a.real.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return fmt.Errorf("%s, which has been deleted and has finalizers: %w", rec.id, err)
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	rec.versions[0].real = live.GetResourceVersion()
	rec.generation = live.GetGeneration()
	rec.writers = writersOf(live)
	copyIdentity(rec.known, live)
	rec.shown = a.shownOf(rec, rec.known)
	return nil
}

// AddGiven creates an object as if it had been given from the start.
func (a *API) AddGiven(obj client.Object) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	entry, err := a.checkObject("AddGiven", obj)
	if err != nil {
		return err
	}
	if a.find(entry.id) != nil {
		return fmt.Errorf("the case has %s already", entry.id)
	}
	given := &givenObjects{objects: []*givenObject{entry}}
	if entry.id.namespace != "" {
		given.namespaces = []string{entry.id.namespace}
	}
	return a.create(ctx, given)
}
