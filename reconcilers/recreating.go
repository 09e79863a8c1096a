// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/difference"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	rtime "trueup.dev/time"
	"trueup.dev/validation"
)

var (
	_ ObjectManager[client.Object] = (*RecreatingObjectManager[client.Object])(nil)
	_ FinalizerHolder              = (*RecreatingObjectManager[client.Object])(nil)
	_ validation.Validator         = (*RecreatingObjectManager[client.Object])(nil)
)

// RecreatingObjectManager is an [ObjectManager] that deletes an object if the API server refuses an update because
// fields cannot change, and lets it be created again: for example a Job with another template, a Deployment with
// another selector, or a StatefulSet with other volume claim templates. Manager does everything else.
//
// In the request in which an update is refused, the object is deleted and Manage returns nil. It is created by the
// request after, when it no longer exists. So a controller must be notified of the deletion: it is for children, and
// for objects of a manager with TrackDesired.
//
// A kind with pods is created again when the old pods are gone, see Propagation: two pods of a migration do not run at
// the same time. In between, pods of the object do not run, unless Propagation is [metav1.DeletePropagationOrphan].
//
// An object is deleted only if all of this holds. Otherwise the error of the update is returned, with the reason:
//
//   - every cause of the refusal is an immutable field, see [ImmutableFields], and is in Fields
//   - the API server still has the object, and no other resource controls it
//   - its deletion loses no data, or AllowDataLoss is set: PersistentVolumeClaims, PersistentVolumes, Namespaces,
//     CustomResourceDefinitions, and StatefulSets that delete their claims are kept
//   - the API server accepts the new object in a dry run, under a generated name. It refuses objects with values that
//     are in use, for example a node port: delete such objects by hand
//   - the same desired state did not cause a deletion in the last ten minutes, in this process
//
// While the reconciled resource is being deleted and its objects are to stay (kubectl delete --cascade=orphan), an
// object that it owns is neither deleted nor reported: Manage returns it as it is.
//
// Events on the reconciled resource: Normal Recreating with the fields, Warning RecreationFailed, and the events of
// Manager. The refused update is not reported as an event if the object is deleted. The permissions are the permissions
// of Manager.
type RecreatingObjectManager[Type client.Object] struct {
	// Name identifies the manager in logs. Defaults to `<Type>RecreatingObjectManager`.
	Name string

	// Manager creates, updates and deletes the object. Required.
	Manager ObjectManager[Type]

	// Fields are the paths of the fields for which an object is recreated, for example `spec.template`, with all fields
	// below them. Defaults to all.
	Fields []string

	// Propagation is what happens to objects that the deleted object owns, for example the pods of a StatefulSet. With
	// [metav1.DeletePropagationForeground] the object exists until they are gone. With
	// [metav1.DeletePropagationOrphan] they remain, and the new object adopts them if its selector matches. Defaults to
	// Foreground for Job, CronJob, Deployment, StatefulSet, ReplicaSet, DaemonSet and ReplicationController, and to
	// [metav1.DeletePropagationBackground] for other kinds. Set Foreground for a custom kind with pods.
	Propagation metav1.DeletionPropagation

	// AllowDataLoss also deletes objects with which data is lost. Defaults to false.
	AllowDataLoss bool

	lazyInit sync.Once
	// recent has the last deletions by the names of the objects.
	recent perObject[recreation[Type]]
}

// recreation is the deletion of an object. It may have to be repeated for the same object.
type recreation[T client.Object] struct {
	of      types.UID
	desired T
	at      time.Time
}

// recreationInterval is the minimum time between two deletions for the same desired state.
const recreationInterval = 10 * time.Minute

func (r *RecreatingObjectManager[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = typeName(newEmpty[T]()) + "RecreatingObjectManager"
		}
	})
}

// SetupWithManager validates the manager and sets up Manager.
func (r *RecreatingObjectManager[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	if err := r.Validate(ctx); err != nil {
		return everyProblem(err)
	}
	return r.Manager.SetupWithManager(ctx, mgr, bldr)
}

// Validate checks the fields. If ctx requests recursion, it also validates Manager.
func (r *RecreatingObjectManager[T]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	if nilcheck.IsNilPointer(r.Manager) {
		problems.add("RecreatingObjectManager %q must define Manager", r.Name)
	}
	switch r.Propagation {
	case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
	default:
		problems.add("RecreatingObjectManager %q must define a known Propagation, not %q", r.Name, r.Propagation)
	}
	problems.nested(ctx, r.Manager, "RecreatingObjectManager %q must have a valid Manager", r.Name)
	return problems.err()
}

// DescribeTo implements [graph.Describer].
func (r *RecreatingObjectManager[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	nestManager(n, "Manager", r.Manager)
}

// HeldFinalizer returns the finalizer of Manager. See [FinalizerHolder].
func (r *RecreatingObjectManager[T]) HeldFinalizer() string { return heldFinalizer(r.Manager) }

// Manage creates, updates, deletes or recreates the object. See [ObjectManager].
func (r *RecreatingObjectManager[T]) Manage(
	ctx context.Context, resource client.Object, actual, desired T,
) (T, error) {
	return r.manage(ctx, resource, actual, desired, handling{})
}

func (r *RecreatingObjectManager[T]) manage(
	ctx context.Context, resource client.Object, actual, desired T, how handling,
) (T, error) {
	r.init()
	var none T
	if !exists(actual) || nilcheck.IsNilPointer(desired) {
		return r.delegate(ctx, resource, actual, desired, how)
	}
	if actual.GetDeletionTimestamp() != nil {
		if last, ok := r.recent.get(nameOnly(actual)); ok && last.of == actual.GetUID() {
			return none, nil // it is being deleted by this manager, and exists until its pods are gone
		}
	}
	wanted := desired.DeepCopyObject().(T) // managers may change it
	managed, err := r.delegate(withHandler(ctx, r.recreates), resource, actual, desired, how)
	if err == nil || !r.recreates(err) {
		return managed, err
	}
	w := newWriter(ctx, r.Name, resource)
	kept, failure := r.recreate(w, actual, wanted, err)
	switch {
	case errors.Is(kept, errOrphaned):
		w.log.Info("not recreating resource", "resource", identify(actual), "reason", kept.Error())
		return actual.DeepCopyObject().(T), nil // a cache may share it
	case failure != nil:
		return managed, w.failed(failure, "unable to recreate resource", "RecreationFailed", "recreate", actual)
	case kept != nil:
		return managed, w.failed(
			&keptError{refused: err, reason: kept}, "unable to update resource", "UpdateFailed", "update", actual,
		)
	}
	return none, nil
}

func (r *RecreatingObjectManager[T]) delegate(
	ctx context.Context, resource client.Object, actual, desired T, how handling,
) (T, error) {
	if manager, ok := r.Manager.(sharingManager[T]); ok {
		return manager.manage(ctx, resource, actual, desired, how)
	}
	if how.shared && !nilcheck.IsNilPointer(actual) {
		actual = actual.DeepCopyObject().(T)
	}
	return r.Manager.Manage(ctx, resource, actual, desired)
}

// recreates reports whether an object is recreated after an error.
func (r *RecreatingObjectManager[T]) recreates(err error) bool {
	immutable := ImmutableFields(err)
	return len(immutable) > 0 && !slices.ContainsFunc(immutable, func(field string) bool {
		return len(r.Fields) > 0 && !slices.ContainsFunc(r.Fields, func(path string) bool { return isBelow(field, path) })
	})
}

// isBelow reports whether a field is at a path or below it.
func isBelow(field, path string) bool {
	rest, ok := strings.CutPrefix(field, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// keptError is why an object was not recreated after a refused update. The API server's reason for the refusal remains
// the reason of the error.
type keptError struct{ refused, reason error }

func (e *keptError) Error() string   { return fmt.Sprintf("%v; not recreated: %v", e.refused, e.reason) }
func (e *keptError) Unwrap() []error { return []error{e.refused, e.reason} }

// recreate deletes the object, or returns why it keeps it. A failure is temporary.
func (r *RecreatingObjectManager[T]) recreate(w writer, actual, desired T, refused error) (kept, failure error) {
	name := nameOnly(actual)
	now := rtime.RetrieveNow(w.ctx)
	last, ok := r.recent.get(name)
	if ok && last.of != actual.GetUID() && now.Sub(last.at) < recreationInterval &&
		difference.Equal(last.desired, desired) {
		return fmt.Errorf("it was deleted less than %s ago for the same desired state", recreationInterval), nil
	}
	live, kind, kept, failure := r.live(w, actual, desired)
	switch {
	case kept != nil || failure != nil:
		return kept, client.IgnoreNotFound(failure)
	case live.GetDeletionTimestamp() != nil:
		return nil, nil // it is created again when it no longer exists
	}
	probe := desired.DeepCopyObject().(T)
	probe.SetGenerateName(actual.GetName() + "-")
	probe.SetName("")
	if err := w.config.Create(w.ctx, probe, client.DryRunAll); err != nil {
		err = fmt.Errorf("a dry run of the creation failed: %w", err)
		if slices.Contains(defaultReflectedReasons, apierrs.ReasonForError(err)) {
			return err, nil
		}
		return nil, err
	}

	fields := strings.Join(ImmutableFields(refused), ", ")
	w.log.Info("recreating resource, because fields cannot be changed", "resource", identify(actual), "fields", fields)
	version := live.GetResourceVersion()
	if err := w.config.Delete(w.ctx, live, client.PropagationPolicy(r.propagation(kind)), client.Preconditions{
		UID: new(live.GetUID()), ResourceVersion: &version,
	}); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	r.recent.put(name, recreation[T]{actual.GetUID(), desired, now}, now, now.Add(recreationInterval))
	w.original.recorder().Eventf(w.resource, corev1.EventTypeNormal, "Recreating",
		"Recreating %s %q: %s cannot be changed", typeName(live), live.GetName(), fields)
	return nil, nil
}

// errOrphaned is why an object stays whose owner is being deleted without what it owns.
var errOrphaned = errors.New("its owner is being deleted, and what it owns stays")

// isOrphaned reports whether an object stays although its owner is being deleted. The garbage collector may have
// removed the reference already, which the desired object has.
func isOrphaned(owner, live, desired client.Object) bool {
	if owner.GetDeletionTimestamp() == nil {
		return false
	}
	if isOwnedBy(live, owner) {
		return orphans(owner)
	}
	return isOwnedBy(desired, owner)
}

// kindsWithPods are those whose pods must be gone before an object is created again.
var kindsWithPods = map[schema.GroupKind]bool{
	{Group: "batch", Kind: "Job"}: true, {Group: "batch", Kind: "CronJob"}: true,
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "ReplicaSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
	{Kind: "ReplicationController"}: true,
}

func (r *RecreatingObjectManager[T]) propagation(kind schema.GroupKind) metav1.DeletionPropagation {
	switch {
	case r.Propagation != "":
		return r.Propagation
	case kindsWithPods[kind]:
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// nameOnly identifies all objects of a name, whatever their UID.
func nameOnly(obj client.Object) client.Object {
	name := &metav1.PartialObjectMetadata{}
	name.Namespace, name.Name = obj.GetNamespace(), obj.GetName()
	return name
}

// live returns the object in the API server if it may be deleted or is being deleted, or why not.
func (r *RecreatingObjectManager[T]) live(
	w writer, actual, desired T,
) (live T, kind schema.GroupKind, kept, failure error) {
	reader := client.Reader(w.config.Client)
	if w.config.APIReader != nil {
		reader = w.config.APIReader
	}
	live = empty.Like(actual)
	if err := reader.Get(w.ctx, client.ObjectKeyFromObject(actual), live); err != nil {
		return live, kind, nil, err
	}
	gvk, err := w.config.GroupVersionKindFor(actual)
	if err != nil {
		return live, kind, nil, err
	}
	nameKind(live, gvk)
	kind = gvk.GroupKind()
	owner := metav1.GetControllerOfNoCopy(live)
	switch {
	case live.GetUID() != actual.GetUID():
		return live, kind, nil, errors.New("it was deleted or created again in the meantime")
	case live.GetDeletionTimestamp() != nil:
		return live, kind, nil, nil
	case owner != nil && owner.UID != w.resource.GetUID():
		return live, kind, fmt.Errorf("%s %q controls it", owner.Kind, owner.Name), nil
	case isOrphaned(w.resource, live, desired):
		return live, kind, errOrphaned, nil
	case !r.AllowDataLoss && r.losesData(kind, live):
		return live, kind, fmt.Errorf("the data of %s %q would be lost, set AllowDataLoss to accept that",
			gvk.Kind, live.GetName()), nil
	}
	return live, kind, nil, nil
}

// losesData reports whether data is lost with an object.
func (r *RecreatingObjectManager[T]) losesData(kind schema.GroupKind, live T) bool {
	switch kind {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"},
		schema.GroupKind{Kind: "Namespace"},
		schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return true
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
		set := appsv1.StatefulSet{}
		if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, &set) != nil {
			return true
		}
		policy := set.Spec.PersistentVolumeClaimRetentionPolicy
		return r.Propagation != metav1.DeletePropagationOrphan && policy != nil &&
			policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return false
}
