// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/validation"
)

var (
	_ ObjectManager[client.Object] = (*ApplyingObjectManager[client.Object])(nil)
	_ FinalizerHolder              = (*ApplyingObjectManager[client.Object])(nil)
	_ validation.Validator         = (*ApplyingObjectManager[client.Object])(nil)
)

// ApplyingObjectManager is an [ObjectManager] that uses server-side apply: it sends only the fields that the desired
// object sets, and owns only these. Other clients can set other fields, and defaults of the API server are no drift. A
// field that the desired object no longer sets is removed, unless it has another owner.
//
// The Go type of a desired object decides which of its fields are set: a pointer that is not nil, a list or map that is
// not nil and not left out of the JSON form, and a number, string or boolean that is not the zero value. To set such a
// zero value, return the desired object from Configuration. The content of an unstructured object is applied as it is.
// The status, and the metadata that the API server sets, are never applied.
//
// The manager sends no request without an effect. It compares the desired object with the managed fields and values of
// the actual object, also after a restart. It knows the defaults within lists that are owned as a whole, as
// [UpdatingObjectManager] does. If a mutating webhook changes what was applied, the manager remembers the result until
// one hour after the last use; after a restart it applies such an object once more. If a webhook keeps the old value of
// each changed field, the error is a [FieldsKeptError], unless the server would store these values for a new object,
// too, which a dry run shows. If the cache strips managed fields, the manager reads each changed object from the API
// server.
//
// The desired object must have a name: the API server does not generate names for applied objects. An existing object
// that is not the actual object is not taken over: Manage returns an AlreadyExists error, as a creation does.
//
// Events on the reconciled resource: Normal Created, Updated, Deleted; Warning CreationFailed, UpdateFailed,
// DeleteFailed; Warning FieldsKept if the server stores other values, also for new objects. No event is recorded for an
// error that matches [ErrQuiet].
//
// RBAC, with the group and the plural of the managed kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;patch;delete
type ApplyingObjectManager[Type client.Object] struct {
	// Name identifies the manager in logs. Defaults to `<Type>ApplyingObjectManager`.
	Name string

	// Type is the kind of the managed objects. Defaults to the type parameter; required for unstructured objects.
	Type Type

	// FieldOwner is the name under which the API server records the fields that this controller owns. If it changes, add
	// the name before to FormerOwners. Two steps that apply fields of one object need different names: with the same name
	// each would remove the fields of the other, so the second one fails. Defaults to [Config].FieldOwner of the root
	// reconciler.
	FieldOwner string

	// FormerOwners are the field managers under which this controller wrote the objects before: with server-side apply,
	// an earlier FieldOwner; with creations and updates, the file name of its binary, unless it set another name. Their
	// fields are moved to FieldOwner with one additional request for each object. Otherwise the controller could not
	// change or remove them. The names in [Config.WithFormerFieldOwners] are added, and so are the names that this
	// package used by default. Optional.
	FormerOwners []string

	// Conflicts is what happens if another client owns a field and has set another value. Defaults to
	// [FailOnConflict].
	Conflicts ConflictPolicy

	// ConflictsAt replaces Conflicts for fields and everything below them, for example
	// {"spec.replicas": GiveWayOnConflict} for a Deployment that a HorizontalPodAutoscaler scales. The longest path
	// that matches is used. Optional.
	ConflictsAt map[string]ConflictPolicy

	// Finalizer is added to the reconciled resource before an object is created or changed. It is removed when no object
	// exists and none is desired. It must be unique and stable, see [WithFinalizer]. Optional.
	Finalizer string

	// TrackDesired makes changes of the managed object trigger the reconciled resource. It is needed if the object has
	// no owner reference. Defaults to false.
	TrackDesired bool

	// Configuration returns the apply configuration of a desired object. It can set fields to zero values that the Go
	// type of the object leaves out. It must return the same configuration for equal objects. Defaults to the fields that
	// the desired object sets.
	Configuration func(desired Type) (runtime.ApplyConfiguration, error)

	// Sanitize returns the loggable part of an object. By default, only its kind and name, and the names of changed
	// fields, are logged. Optional.
	Sanitize func(child Type) any

	lazyInit sync.Once
	memory   appliedMemory[Type]
	comparer comparer[client.Object]
	// alternations are only used by a manager that applies an object twice in a request.
	alternations alternations
}

func (r *ApplyingObjectManager[T]) init() {
	r.lazyInit.Do(func() {
		if nilcheck.IsNilPointer(r.Type) {
			r.Type = newEmpty[T]()
		}
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sApplyingObjectManager", typeName(r.Type))
		}
	})
}

// SetupWithManager validates the manager. If TrackDesired is set, it watches the managed kind.
func (r *ApplyingObjectManager[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	if err := r.Validate(ctx); err != nil {
		return everyProblem(err)
	}
	if r.TrackDesired {
		config := RetrieveConfigOrDie(ctx)
		config.watch(mgr, bldr, watchable(r.Type, config.Scheme()), EnqueueTracked(ctx))
	}
	return nil
}

// Validate checks the fields. The context must hold a config.
func (r *ApplyingObjectManager[T]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	config := RetrieveConfigOrDie(ctx)
	switch {
	case nilcheck.IsNilPointer(r.Type):
		problems.add("ApplyingObjectManager %q must define Type", r.Name)
	case config.Client != nil && duck.IsDuck(r.Type, config.Scheme()):
		problems.add("ApplyingObjectManager %q must not use a duck type, which lacks fields to apply", r.Name)
	}
	if !r.Conflicts.valid() {
		problems.add("ApplyingObjectManager %q must define a known policy as Conflicts, not %q", r.Name, r.Conflicts)
	}
	for _, path := range sortedKeys(r.ConflictsAt) {
		if policy := r.ConflictsAt[path]; policy == "" || !policy.valid() {
			problems.add("ApplyingObjectManager %q must define a known policy as ConflictsAt[%q], not %q", r.Name, path, policy)
		}
	}
	if owner := r.FieldOwner; len(owner) > maxFieldOwner {
		problems.add("ApplyingObjectManager %q must define a FieldOwner of at most %d bytes, it has %d",
			r.Name, maxFieldOwner, len(owner))
	}
	return problems.err()
}

// HeldFinalizer returns Finalizer. See [FinalizerHolder].
func (r *ApplyingObjectManager[T]) HeldFinalizer() string {
	return r.Finalizer
}

// Manage creates, changes or deletes the object. See [ObjectManager].
func (r *ApplyingObjectManager[T]) Manage(ctx context.Context, resource client.Object, actual, desired T) (T, error) {
	return r.manage(ctx, resource, actual, desired, handling{})
}

// manage implements Manage. If actual is shared with a cache, it returns a copy.
func (r *ApplyingObjectManager[T]) manage(
	ctx context.Context, resource client.Object, actual, desired T, how handling,
) (T, error) {
	r.init()
	var none T
	w := newWriter(ctx, r.Name, resource)
	w.how = how
	if nilcheck.IsNilPointer(desired) {
		if !exists(actual) {
			return none, ClearFinalizer(ctx, resource, r.Finalizer)
		}
		if actual.GetDeletionTimestamp() != nil {
			return none, nil
		}
		if err := w.delete(actual); err != nil {
			return none, err
		}
		r.memory.forget(actual.GetUID())
		return none, nil
	}
	if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
		return none, err
	}
	a := application[T]{writer: w, manager: r, owner: r.owner(ctx), desired: desired, shared: how.shared}
	if !exists(actual) {
		return a.create()
	}
	return a.update(actual)
}
