// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/ownership"
	"trueup.dev/observe"
)

// ReasonFieldsKept is the reason of a [FieldsKeptError] among [ChildReconciler].ReflectedChildErrorReasons.
const ReasonFieldsKept metav1.StatusReason = "FieldsKept"

// FieldsKeptError is the error of an [UpdatingObjectManager] or an [ApplyingObjectManager] if the API server accepts an
// update and none of the requested changes: a webhook keeps the old values. For a new object it would store the
// requested values.
type FieldsKeptError struct {
	// Object is the kind, the namespace and the name of the object.
	Object string
	// Fields are the paths of the fields that were to be changed.
	Fields []string
}

// Error names the fields.
func (e *FieldsKeptError) Error() string {
	return fmt.Sprintf("the API server accepted the update of %s and kept the old values, a webhook may do this: %s",
		e.Object, strings.Join(e.Fields, ", "))
}

// Status returns the error with [ReasonFieldsKept], by which it is reflected on the parent of a child.
func (e *FieldsKeptError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: ReasonFieldsKept, Message: e.Error()}
}

// serverFields are the fields that the API server sets, or that an update does not change.
var serverFields = []string{
	"status", "metadata.creationTimestamp", "metadata.generation", "metadata.managedFields", "metadata.resourceVersion",
	"metadata.selfLink", "metadata.uid",
}

// effect is the result of the changes that an update requested.
type effect struct {
	// kept are the fields that were to get a value and have the old one. It is empty if one of them has changed.
	kept []string
	// rewritten are the fields that were to be removed and got another value.
	rewritten []string
}

// effectOf compares an object before an update, as it was sent, and as it was stored.
func effectOf(before, sent, stored any) effect {
	changed := difference.Between(before, stored)
	has := func(path string) bool {
		return slices.ContainsFunc(changed, func(d difference.Difference) bool {
			return isBelow(d.Field(), path) || isBelow(path, d.Field())
		})
	}
	found, took := effect{}, false
	for _, d := range difference.Between(before, sent) {
		path := d.Field()
		switch {
		case slices.ContainsFunc(serverFields, func(field string) bool { return isBelow(path, field) }):
		case !d.Removed:
			took = took || has(path)
			found.kept = append(found.kept, path)
		case slices.ContainsFunc(changed, func(c difference.Difference) bool { return c.Field() == path && !c.Removed }):
			found.rewritten = append(found.rewritten, path)
		}
	}
	if took {
		found.kept = nil
	}
	return found
}

// judge decides about an update that the API server has accepted. It returns a [FieldsKeptError] if the server kept all
// old values and would not do so for a new object. If it stores other values than requested for a new object, too, the
// update is done, and limited reports whether it is tried again after some time.
func (r *UpdatingObjectManager[T]) judge(
	ctx context.Context, w writer, actual, sent, stored, desired T,
) (limited bool, err error) {
	found := effectOf(actual, sent, stored)
	if len(found.rewritten) > 0 {
		w.warn("FieldsRewritten", stored, "The API server sets fields of %s to another value with each update. "+
			"If MergeBeforeUpdate keeps them, there are fewer updates: %s", found.rewritten)
	}
	if len(found.kept) == 0 {
		return false, nil
	}
	if r.admission.wasKept(actual.GetUID(), desired) {
		return true, nil
	}
	asNew := r.asNew(ctx, w, desired)
	if asNew != nil {
		if !slices.ContainsFunc(difference.Between(sent, asNew), func(d difference.Difference) bool {
			return slices.ContainsFunc(found.kept, func(path string) bool { return isBelow(d.Field(), path) })
		}) {
			return false, w.fieldsKept(actual, found.kept)
		}
	}
	w.keptForNew(stored, found.kept, asNew != nil)
	return true, nil
}

// fieldsKept returns the error for an update none of whose changes took effect.
func (w writer) fieldsKept(actual client.Object, fields []string) error {
	err := &FieldsKeptError{Object: identify(actual), Fields: fields}
	if gvk, kindErr := w.config.GroupVersionKindFor(actual); kindErr == nil {
		observe.ReportRefused(w.ctx, gvk.GroupKind(), client.ObjectKeyFromObject(actual), err)
	}
	return err
}

// keptForNew warns about values that the API server also stores for new objects. isKnown reports whether a dry run has
// shown that.
func (w writer) keptForNew(stored client.Object, fields []string, isKnown bool) {
	text := "The API server stores other values of %s than requested, also for new objects: %s"
	if !isKnown {
		text = "The API server stores other values of %s than requested, the dry run of a creation failed: %s"
	}
	w.warn("FieldsKept", stored, text, fields)
}

// judge decides about an apply that the API server has accepted, as [UpdatingObjectManager.judge] does about an update.
// before and after are the differences of the object from the document.
func (a application[T]) judge(
	actual, stored T, document map[string]any, before, after []ownership.Difference,
) (limited bool, err error) {
	kept := ownership.Kept(before, after)
	if len(kept) == 0 {
		return false, nil
	}
	if a.manager.memory.wasKept(stored, a.desired) {
		return true, nil
	}
	asNew, ok := a.asNew(document)
	if ok && !slices.ContainsFunc(asNew, func(d ownership.Difference) bool {
		return slices.ContainsFunc(kept, func(path string) bool {
			return isAtOrBelow(d.Path, path) || isAtOrBelow(path, d.Path)
		})
	}) {
		return false, a.fieldsKept(actual, kept)
	}
	a.keptForNew(stored, kept, ok)
	return true, nil
}

// asNew returns how the object that the API server would store differs from the document if it were new, if the server
// says so.
func (a application[T]) asNew(document map[string]any) (differences []ownership.Difference, ok bool) {
	request := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(document)}
	const suffix = 5 // of a name that no object has
	name := request.GetName()
	request.SetName(name[:min(len(name), 63-suffix-1)] + "-" + rand.String(suffix))
	if err := a.config.Apply(a.ctx, client.ApplyConfigurationFromUnstructured(request), client.FieldOwner(a.owner),
		client.DryRunAll); err != nil {
		a.log.Info("unable to determine what the API server would store for a new object", "reason", err.Error())
		return nil, false
	}
	entry, _ := ownership.EntryOf(request.GetManagedFields(), a.owner)
	return ownership.Compare(document, request.Object, ownership.FieldsOf(entry)).Differences, true
}

// asNew returns what the API server would store if the object were new, or nil if it does not say so.
func (r *UpdatingObjectManager[T]) asNew(ctx context.Context, w writer, desired T) client.Object {
	created := desired.DeepCopyObject().(T)
	const suffix = 10 // of a generated name, and the separator
	if name := created.GetName(); name != "" {
		created.SetGenerateName(name[:min(len(name), 63-suffix)] + "-")
		created.SetName("")
	}
	created.SetResourceVersion("")
	created.SetUID("")
	if err := w.config.Create(ctx, created, client.DryRunAll); err != nil {
		w.log.Info("unable to determine what the API server would store for a new object", "reason", err.Error())
		return nil
	}
	return created
}

// warn logs and records what the API server did with fields of an object.
func (w writer) warn(reason string, obj client.Object, text string, fields []string) {
	message := fmt.Sprintf(text, identify(obj), strings.Join(fields, ", "))
	w.log.Info(message)
	w.original.recorder().Event(w.resource, corev1.EventTypeWarning, reason, truncate(message))
}
