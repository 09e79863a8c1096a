// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/finalizername"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

var (
	_ reconcilers.SubReconciler[client.Object] = (*Opinionated[client.Object])(nil)
	_ validation.Validator                     = (*Opinionated[client.Object])(nil)
)

// Opinionated calls a handler so that it misses nothing while the controller is down, and so that most writes of
// controllers do not trigger it:
//
//   - It adds a finalizer before the first call, adds it again if another client removes it, and removes it after
//     the deletion has been handled.
//   - Only a new generation counts as a change, unless the Handler's React selects other changes.
//   - A resource that an earlier process has handled is resynced, not created again. The mark for this is
//     status.observedGeneration, which is written for handlers that do not write it themselves. For kinds without
//     that field the mark is InProgressFinalizer, or the finalizer itself if InProgressFinalizer is empty. With the
//     finalizer as the mark, a resource whose first call never succeeded is also resynced after a restart.
//
// For each resource it writes one patch to add the finalizer, one to remove it, and one for each generation if the
// status has an observedGeneration that no other client writes. Use [OpinionatedWatcher] or [NewOpinionated] to
// make an Opinionated.
type Opinionated[Type resource.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Opinionated`.
	Name string

	// Finalizer is the finalizer to set, a qualified name such as `example.com/myapp-widgets`. For custom resources, a
	// name without a domain is allowed. It must never change; add former names to Aliases. Required.
	Finalizer string

	// Aliases are former names of the finalizer. They are replaced by Finalizer. Optional.
	Aliases []string

	// InProgressFinalizer is set instead of Finalizer until the first call has succeeded. It needs one more patch.
	// Optional.
	InProgressFinalizer string

	// Handler is called after the finalizer is set. Its Finalizers and Handled are set unless they have values.
	// Required.
	Handler *WithEdge[Type]

	lazyInit sync.Once
	unkept   unkept
}

// OpinionatedWatcher returns a reconciler that calls a watcher. The finalizer keeps each resource until its deletion
// is handled.
func OpinionatedWatcher[T resource.Object](finalizer string, watcher TypedWatcher[T]) *Opinionated[T] {
	return opinionated(finalizer, WatcherReconciler(watcher))
}

// NewOpinionated returns a reconciler that calls a Reconciler. The finalizer keeps each resource until its deletion is
// handled. See also [OpinionatedReconciler].
func NewOpinionated[T resource.Object](finalizer string, reconciler Reconciler) *Opinionated[T] {
	return opinionated(finalizer, AsSubReconciler[T](reconciler))
}

func opinionated[T resource.Object](finalizer string, handler *WithEdge[T]) *Opinionated[T] {
	handler.React = ReactSpec
	return &Opinionated[T]{Finalizer: finalizer, Handler: handler}
}

func (r *Opinionated[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Opinionated"
		}
		if r.Handler == nil {
			return
		}
		if r.Handler.Finalizers == nil {
			r.Handler.Finalizers = r.finalizers()
		}
		if r.Handler.Handled == nil {
			r.Handler.Handled = r.wasHandled
		}
	})
}

// finalizers returns the names of all finalizers that this reconciler sets or has set in the past.
func (r *Opinionated[T]) finalizers() []string {
	names := append([]string{r.Finalizer}, r.Aliases...)
	if r.InProgressFinalizer != "" {
		names = append(names, r.InProgressFinalizer)
	}
	return names
}

// wasHandled reports whether an earlier process has handled the resource.
func (r *Opinionated[T]) wasHandled(resource T) bool {
	if observed := r.observed(resource); observed != nil && r.InProgressFinalizer == "" {
		return *observed > 0
	}
	return controllerutil.ContainsFinalizer(resource, r.Finalizer) || r.alias(resource) != ""
}

// observed returns the observedGeneration of the status. It returns nil if the status does not have the field or
// belongs to another controller.
func (r *Opinionated[T]) observed(resource T) *int64 {
	if r.Handler.place.foreignStatus {
		return nil
	}
	return observedGeneration(resource)
}

// alias returns the former name of the finalizer that the resource has, or "".
func (r *Opinionated[T]) alias(resource T) string {
	if i := slices.IndexFunc(r.Aliases, func(name string) bool {
		return controllerutil.ContainsFinalizer(resource, name)
	}); i >= 0 {
		return r.Aliases[i]
	}
	return ""
}

// SetupWithManager validates the reconciler and sets up the handler.
func (r *Opinionated[T]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	r.init()
	validating, _ := setupcheck.Begin(ctx) // the handler validates the rest
	if err := r.Validate(validating); err != nil {
		return err
	}
	defer registration.Enter(ctx, r.Handler)()
	return r.Handler.SetupWithManager(ctx, mgr, bldr)
}

// Validate checks the required fields and, when ctx asks for recursion, the handler.
func (r *Opinionated[T]) Validate(ctx context.Context) error {
	r.init()
	var errs []error
	if r.Handler == nil {
		errs = append(errs, fmt.Errorf("Opinionated %q must define Handler", r.Name))
	} else if validation.IsRecursive(ctx) {
		errs = append(errs, r.Handler.Validate(ctx))
	}
	errs = append(errs, r.validateName("Finalizer", r.Finalizer))
	if r.InProgressFinalizer != "" {
		errs = append(errs, r.validateName("InProgressFinalizer", r.InProgressFinalizer))
	}
	if slices.Contains(r.Aliases, "") {
		errs = append(errs, fmt.Errorf("Opinionated %q must not have an empty name in Aliases", r.Name))
	}
	if names := r.finalizers(); len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names) {
		errs = append(
			errs, fmt.Errorf("Opinionated %q must have different names in Finalizer, Aliases and InProgressFinalizer", r.Name),
		)
	}
	return errors.Join(errs...)
}

func (r *Opinionated[T]) validateName(field, name string) error {
	fault := finalizername.Fault(name, isBuiltIn[T]())
	if fault == "" {
		return nil
	}
	return fmt.Errorf("Opinionated %q must have a qualified name such as example.com/myapp-widgets in %s, got %q: %s",
		r.Name, field, name, fault)
}

// isBuiltIn reports whether a Go type is one of a kind of Kubernetes.
func isBuiltIn[T any]() bool {
	if reflect.TypeFor[T]().Kind() != reflect.Pointer {
		return false
	}
	object, ok := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(runtime.Object)
	if !ok {
		return false
	}
	_, _, err := clientgoscheme.Scheme.ObjectKinds(object)
	return err == nil
}

// Reconcile adds the finalizer, calls the handler, and removes the finalizer after the handler has handled the
// deletion.
func (r *Opinionated[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, func(
		ctx context.Context, resource T,
	) (reconcilers.Result, error) {
		if isDeleting(resource) {
			return r.finalize(ctx, resource)
		}
		return r.reconcile(ctx, resource)
	})
}

// Absent handles a resource that does not exist. Usually its deletion was handled before its finalizer was removed.
// Two exceptions remain: another client has removed the finalizer, or the resource still exists but the controller no
// longer selects it. In the latter case Absent removes the finalizer.
func (r *Opinionated[T]) Absent(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error) {
	r.init()
	r.unkept.delete(req.NamespacedName)
	absent, _ := r.Handler.ledger.absent(req.NamespacedName)
	result, err := r.Handler.Absent(ctx, req)
	if absent == nil || err != nil {
		return result, err
	}
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return result, err
	}
	current := empty.Like(absent)
	err = pastCache(config).Get(ctx, req.NamespacedName, current)
	if err != nil || current.GetUID() != absent.GetUID() || r.Handler.knows(req.NamespacedName) {
		return result, client.IgnoreNotFound(err)
	}
	return result, r.release(ctx, current)
}

// release removes all finalizers of this reconciler.
func (r *Opinionated[T]) release(ctx context.Context, resource client.Object) error {
	for _, name := range r.finalizers() {
		if err := replaceFinalizer(ctx, resource, name, ""); err != nil {
			return r.reported(ctx, resource, err)
		}
	}
	return nil
}

func (r *Opinionated[T]) under(p place) {
	if r.Handler != nil {
		r.Handler.under(p)
	}
}

func (r *Opinionated[T]) listen(ctx context.Context, bldr *reconcilers.Builder) {
	if r.init(); r.Handler != nil {
		r.Handler.listen(ctx, bldr)
	}
}

func (r *Opinionated[T]) writesStatus() bool { return r.Handler != nil && r.Handler.writesStatus() }

func (r *Opinionated[T]) gaveUp(key types.NamespacedName) bool { return r.Handler.gaveUp(key) }

func (r *Opinionated[T]) reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	// This must come before the finalizer is added, because the finalizer marks the resource as handled.
	if result, err := step.Run(ctx, step.Node{Name: r.Handler.Name}, resource, r.Handler.handleReplaced); err != nil {
		return result, err
	}
	if wait, err := r.unkept.wait(resource); wait > 0 {
		return reconcilers.Result{RequeueAfter: wait}, waiting{err}
	}
	if err := r.keep(ctx, resource); err != nil {
		return r.unableToKeep(ctx, resource, err)
	}
	r.unkept.forget(resource)
	result, err := r.Handler.Reconcile(ctx, resource)
	if err != nil || !r.Handler.isAcked(resource) {
		return result, err
	}
	if r.InProgressFinalizer != "" && controllerutil.ContainsFinalizer(resource, r.InProgressFinalizer) {
		if err := replaceFinalizer(ctx, resource, r.InProgressFinalizer, r.Finalizer); err != nil {
			return result, r.reported(ctx, resource, err)
		}
	}
	observed := r.observed(resource)
	if !r.Handler.place.patchesStatus || observed == nil || *observed == resource.GetGeneration() {
		return result, nil
	}
	return result, writeObserved(ctx, resource)
}

// keep adds the finalizer, so that the resource cannot be deleted before the handler has handled the deletion.
func (r *Opinionated[T]) keep(ctx context.Context, resource T) error {
	handled := r.Handler.Handled(resource)
	if !handled && r.InProgressFinalizer == "" && r.observed(resource) == nil {
		// Once the finalizer is set, it marks the resource as handled.
		r.Handler.recordIntent(resource, ReconcileActionCreated)
	}
	if alias := r.alias(resource); alias != "" {
		return replaceFinalizer(ctx, resource, alias, r.Finalizer)
	}
	if r.InProgressFinalizer != "" && !handled && !controllerutil.ContainsFinalizer(resource, r.Finalizer) {
		return replaceFinalizer(ctx, resource, "", r.InProgressFinalizer)
	}
	return replaceFinalizer(ctx, resource, "", r.Finalizer)
}

// finalize calls the handler for a resource that is being deleted, and removes the finalizers after it succeeded.
func (r *Opinionated[T]) finalize(ctx context.Context, resource T) (reconcilers.Result, error) {
	result, err := r.Handler.Reconcile(ctx, resource)
	if err != nil {
		return result, err
	}
	return result, r.release(ctx, resource)
}

// reported calls OnError of the handler, which has succeeded, for a finalizer that cannot be written.
func (r *Opinionated[T]) reported(ctx context.Context, object client.Object, err error) error {
	if typed, ok := object.(T); ok && r.Handler.OnError != nil && !errors.Is(err, reconcilers.ErrQuiet) {
		r.Handler.OnError(ctx, typed, err)
	}
	return err
}
