// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
	"trueup.dev/internal/defaults"
	"trueup.dev/internal/step"
	"trueup.dev/validation"
)

var (
	_ ObjectManager[client.Object] = (*UpdatingObjectManager[client.Object])(nil)
	_ validation.Validator         = (*UpdatingObjectManager[client.Object])(nil)
)

// UpdatingObjectManager is an [ObjectManager] that updates whole objects: it merges the desired state into a copy of
// the actual object and sends that to the API server when it differs from the actual one.
//
// What the API server fills in is not mistaken for drift: a field that the author leaves unset and that has its default
// is in sync. One that has another value is not, whoever has set it, and is written. The defaults of the kinds of
// Kubernetes are known, and so is what the server allocates for them (addresses and ports of a Service, for example);
// those of custom resources are read from the API server, once for each version of a group, where [Config] has
// Discovery. What admission webhooks change is remembered and expected from then on. The memory is kept for an hour
// after its last use. Without one, as after a restart, an object that a webhook has changed is written once more, which
// changes nothing on the server.
//
// The log line of an update lists the fields that change. Where the defaults of a kind are not known, those that the
// author leaves unset and that the actual object has are listed apart, as possiblyDefaults.
//
// Events on the reconciled resource: Normal Created, Updated, Deleted; Warning CreationFailed, UpdateFailed,
// DeleteFailed. Nothing is emitted for an error that is [ErrQuiet].
//
// RBAC, with the group and the plural of the managed kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;update;patch;delete
type UpdatingObjectManager[Type client.Object] struct {
	// Name identifies the manager in logs. Defaults to `<Type>UpdatingObjectManager`.
	Name string

	// Type is the kind of objects managed. Defaults to the type parameter; required when that is an interface or a duck
	// type.
	Type Type

	// Finalizer is put on the reconciled resource before an object is created or updated, and taken off when none exists
	// and none is desired. Optional. It has to be unique and stable, see [WithFinalizer].
	Finalizer string

	// TrackDesired makes changes of the managed object trigger the reconciled resource. Needed where there is no owner
	// reference. Defaults to false.
	TrackDesired bool

	// HarmonizeImmutableFields copies fields that cannot be changed from the current to the desired object before they are
	// merged. Optional.
	HarmonizeImmutableFields func(current, desired Type)

	// MergeBeforeUpdate copies what is managed, often the labels and the spec, from the desired onto the current object.
	// Required.
	MergeBeforeUpdate func(current, desired Type)

	// Sanitize returns what may be logged of an object. By default no values are logged, only which fields change; with
	// verbosity 1 values are logged too, except for Secrets.
	Sanitize func(child Type) any

	// DangerouslyAllowDuckTypes allows Type to be a duck type. Fields that the duck type does not know are lost when
	// objects are created or updated. Defaults to false.
	DangerouslyAllowDuckTypes bool

	lazyInit  sync.Once
	admission admissionMemory[Type]
	schemas   defaults.Schemas
	carriers  carriers
}

func (r *UpdatingObjectManager[T]) init() {
	r.lazyInit.Do(func() {
		if isNil(r.Type) {
			r.Type = newEmpty[T]()
		}
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sUpdatingObjectManager", typeName(r.Type))
		}
	})
}

// SetupWithManager validates the manager, and watches the managed kind when TrackDesired asks for it.
func (r *UpdatingObjectManager[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	if err := r.Validate(ctx); err != nil {
		return everyProblem(err)
	}
	if r.TrackDesired {
		if isNil(r.Type) {
			return fmt.Errorf("UpdatingObjectManager %q must define Type to use TrackDesired", r.Name)
		}
		config := RetrieveConfigOrDie(ctx)
		config.watch(mgr, bldr, watchable(r.Type, config.Scheme()), EnqueueTracked(ctx))
	}
	return nil
}

// Validate checks the required fields. The context must hold a config.
func (r *UpdatingObjectManager[T]) Validate(ctx context.Context) error {
	problems := problems{}
	if r.MergeBeforeUpdate == nil {
		problems.add("UpdatingObjectManager %q must define MergeBeforeUpdate", r.Name)
	}
	if config := RetrieveConfigOrDie(ctx); !isNil(r.Type) && config.Client != nil &&
		!r.DangerouslyAllowDuckTypes && duck.IsDuck(r.Type, config.Scheme()) {
		problems.add("UpdatingObjectManager %q must enable DangerouslyAllowDuckTypes to use a duck type", r.Name)
	}
	return problems.err()
}

// Setup validates the manager.
//
// Deprecated: use [UpdatingObjectManager.SetupWithManager].
func (r *UpdatingObjectManager[T]) Setup(ctx context.Context) error {
	r.init()
	return everyProblem(r.Validate(ctx))
}

// Manage creates, updates or deletes the object. See [ObjectManager].
func (r *UpdatingObjectManager[T]) Manage(ctx context.Context, resource client.Object, actual, desired T) (T, error) {
	return r.manage(ctx, resource, actual, desired, false)
}

// manage is Manage. Who shares actual with a cache gets a copy of it back.
func (r *UpdatingObjectManager[T]) manage(
	ctx context.Context, resource client.Object, actual, desired T, shared bool,
) (T, error) {
	r.init()
	var none T

	if isNil(desired) {
		if !exists(actual) {
			return none, ClearFinalizer(ctx, resource, r.Finalizer)
		}
		if actual.GetDeletionTimestamp() != nil {
			return none, nil
		}
		return none, r.delete(ctx, resource, actual)
	}
	if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
		return none, err
	}
	if !exists(actual) {
		return r.create(ctx, resource, desired)
	}
	return r.update(ctx, resource, actual, desired, shared)
}

func (r *UpdatingObjectManager[T]) delete(ctx context.Context, resource client.Object, actual T) error {
	w := r.writer(ctx, resource)
	w.log.Info("deleting unwanted resource", "resource", identify(actual))
	// An object of the same name that is not the one that was looked at is none of our business.
	switch err := w.config.Delete(ctx, actual, preconditions(actual)...); {
	case apierrs.IsNotFound(err), apierrs.IsConflict(err) && actual.GetUID() != "":
		w.log.V(1).Info("unwanted resource is gone already", "resource", identify(actual))
	case err != nil:
		return w.failed(err, "unable to delete unwanted resource", "DeleteFailed", "delete", actual)
	default:
		w.succeeded("Deleted", actual)
	}
	r.admission.forget(actual.GetUID())
	return nil
}

func (r *UpdatingObjectManager[T]) create(ctx context.Context, resource client.Object, desired T) (T, error) {
	w := r.writer(ctx, resource)
	w.log.Info("creating resource", "resource", r.describe(w.log, desired))
	asked := desired.DeepCopyObject().(T)
	if err := w.config.Create(ctx, desired); err != nil {
		var none T
		return none, w.failed(err, "unable to create resource", "CreationFailed", "create", desired)
	}
	if r.TrackDesired {
		w.track(desired)
	}
	w.succeeded("Created", desired)
	r.remember(w.log, asked, desired)
	return desired, nil
}

func (r *UpdatingObjectManager[T]) update(
	ctx context.Context, resource client.Object, actual, desired T, shared bool,
) (T, error) {
	w := r.writer(ctx, resource)
	if r.TrackDesired {
		w.track(actual)
	}

	// The cache may hold what is in actual: everybody else gets a copy.
	current := r.copyToCompare(actual)
	if r.HarmonizeImmutableFields != nil {
		r.HarmonizeImmutableFields(current, desired)
	}
	r.MergeBeforeUpdate(current, r.admission.expected(actual.GetUID(), desired))
	if identical := reflect.DeepEqual(current, actual); identical || equality.Semantic.DeepEqual(current, actual) {
		if log := w.log.V(1); log.Enabled() {
			log.Info("resource is in sync, no update required", "resource", identify(actual))
		}
		switch {
		case !shared:
			return actual, nil
		case !identical:
			return r.copyToCompare(actual), nil
		}
		return current, nil
	}

	filled, known := r.withDefaults(w, current, actual)
	if known && same(filled, actual) {
		w.log.V(1).Info(
			"resource is in sync with the defaults of the API server, no update required", "resource", identify(actual),
		)
		// It is what the server makes of what is desired.
		r.remember(w.log, desired.DeepCopyObject().(T), actual)
		if shared {
			return r.copyToCompare(actual), nil
		}
		return actual, nil
	}

	w.log.Info(
		"updating resource", append([]any{"resource", identify(actual)}, r.diff(w.log, actual, filled, known)...)...,
	)
	current.SetManagedFields(slices.Clone(current.GetManagedFields()))
	if err := w.config.Update(ctx, current); err != nil {
		var none T
		return none, w.failed(err, "unable to update resource", "UpdateFailed", "update", actual)
	}
	// The author may hand out the same object again, changed.
	r.remember(w.log, desired.DeepCopyObject().(T), current)
	if version := actual.GetResourceVersion(); version != "" && version == current.GetResourceVersion() {
		// The server found nothing to change: what differed is what it adds itself.
		w.log.V(1).Info("resource was in sync, the server changes nothing", "resource", identify(current))
		return current, nil
	}
	w.log.Info("updated resource", "resource", identify(current))
	w.succeeded("Updated", current)
	return current, nil
}

// copyToCompare returns a copy that shares its managed fields: there are many of them, and nobody changes them in
// place.
func (r *UpdatingObjectManager[T]) copyToCompare(obj T) T {
	value := reflect.ValueOf(obj).Elem()
	if _, ok := any(obj).(runtime.Unstructured); ok || value.Kind() != reflect.Struct || len(obj.GetManagedFields()) == 0 {
		return obj.DeepCopyObject().(T)
	}
	copied := r.carriers.copyPart(obj, func(carrier reflect.Value) {
		carrier.Set(value)
		carrier.Addr().Interface().(client.Object).SetManagedFields(nil)
	})
	copied.SetManagedFields(obj.GetManagedFields())
	return copied.(T)
}

// remember notes what the server made of the object it was asked for. It keeps asked.
func (r *UpdatingObjectManager[T]) remember(log logr.Logger, asked, stored T) {
	if r.MergeBeforeUpdate == nil {
		return
	}
	if r.HarmonizeImmutableFields != nil {
		// What is desired next time will have been harmonized with what is stored now.
		r.HarmonizeImmutableFields(stored.DeepCopyObject().(T), asked)
	}
	if err := r.admission.learn(asked, stored, r.MergeBeforeUpdate); err != nil {
		log.V(1).Info(
			"unable to tell what the server changes, the resource may be updated again", "resource", identify(stored), "reason",
			err.Error(),
		)
	}
}

// writer is what writing one object for one reconciled resource takes.
type writer struct {
	ctx      context.Context
	log      logr.Logger
	resource client.Object
	config   Config
	original Config
}

func (r *UpdatingObjectManager[T]) writer(ctx context.Context, resource client.Object) writer {
	w := writer{
		ctx:      ctx,
		log:      logr.FromContextOrDiscard(ctx).WithName(r.Name),
		resource: resource,
		config:   RetrieveConfigOrDie(ctx),
		original: RetrieveOriginalConfigOrDie(ctx),
	}
	if r.DangerouslyAllowDuckTypes {
		w.config = w.config.WithDangerousDuckClientOperations()
	}
	return w
}

func (w writer) succeeded(reason string, obj client.Object) {
	w.original.Recorder.Eventf(w.resource, corev1.EventTypeNormal, reason, reason+" %s %q", typeName(obj), obj.GetName())
}

func (w writer) failed(err error, message, reason, verb string, obj client.Object) error {
	if !isSilent(w.ctx, err) {
		w.log.Error(err, message, "resource", identify(obj))
		w.original.Recorder.Eventf(w.resource, corev1.EventTypeWarning, reason,
			"Failed to "+verb+" %s %q: %v", typeName(obj), obj.GetName(), err)
		step.About(w.ctx, err, identify(obj))
		step.Recorded(w.ctx, err)
	}
	return err
}

func (w writer) track(obj client.Object) {
	if err := w.config.Tracker.TrackObject(obj, w.resource); err != nil {
		logUntracked(w.ctx, err, obj)
	}
}

func preconditions(obj client.Object) []client.DeleteOption {
	if uid := obj.GetUID(); uid != "" {
		return []client.DeleteOption{client.Preconditions{UID: &uid}}
	}
	return nil
}

// HeldFinalizer is Finalizer. See [FinalizerHolder].
func (r *UpdatingObjectManager[T]) HeldFinalizer() string {
	return r.Finalizer
}
