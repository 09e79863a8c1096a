// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kvalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/setupcheck"
	"trueup.dev/internal/step"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

var (
	_ reconcilers.SubReconciler[client.Object] = (*Opinionated[client.Object])(nil)
	_ validation.Validator                     = (*Opinionated[client.Object])(nil)
)

// Opinionated handles resources so that nothing is missed while the controller is down, and so that most of what is
// written by controllers goes unnoticed:
//
//   - A finalizer is on the resource before it is handled for the first time, is put back when somebody takes it off,
//     and is cleared once the deletion has been handled.
//   - Only a new generation counts as a change, unless the Handler's React says otherwise.
//   - Resources that an earlier process has handled are resynced, not created again. The mark of that is
//     status.observedGeneration, which is written for handlers that do not write it themselves. For kinds without that
//     field it is InProgressFinalizer, or else the finalizer itself: then a resource whose first call has never
//     succeeded is resynced, too, after a restart.
//
// What it writes for a resource: one patch for the finalizer, one for its end, and one for each generation if there is
// an observedGeneration that nobody else writes. It is made by [OpinionatedWatcher] or [OpinionatedReconciler].
type Opinionated[Type resource.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Opinionated`.
	Name string

	// Finalizer is the finalizer to set, a qualified name such as `example.com/myapp-widgets`. It must never change;
	// former names belong in Aliases. Required.
	Finalizer string

	// Aliases are former names of the finalizer. They are replaced by Finalizer where they are found. Optional.
	Aliases []string

	// InProgressFinalizer is on the resource in place of Finalizer until the first call has succeeded. It costs one more
	// patch. Optional.
	InProgressFinalizer string

	// Handler is called with the finalizer in place. Its Finalizers and its Handled are set unless they have values.
	// Required.
	Handler *WithEdge[Type]

	lazyInit sync.Once
}

// OpinionatedWatcher returns a reconciler that calls a watcher and keeps resources by the finalizer until their
// deletion is handled.
func OpinionatedWatcher[T resource.Object](finalizer string, watcher TypedWatcher[T]) *Opinionated[T] {
	return opinionated(finalizer, WatcherReconciler(watcher))
}

// OpinionatedReconciler returns a reconciler that calls a Reconciler and keeps resources by the finalizer until their
// deletion is handled.
func OpinionatedReconciler[T resource.Object](finalizer string, reconciler Reconciler) *Opinionated[T] {
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
			r.Handler.Finalizers = r.ours()
		}
		if r.Handler.Handled == nil {
			r.Handler.Handled = r.wasHandled
		}
	})
}

// ours are the names of all finalizers by which resources were ever kept.
func (r *Opinionated[T]) ours() []string {
	names := append([]string{r.Finalizer}, r.Aliases...)
	if r.InProgressFinalizer != "" {
		names = append(names, r.InProgressFinalizer)
	}
	return names
}

// wasHandled tells whether an earlier process has handled the resource.
func (r *Opinionated[T]) wasHandled(resource T) bool {
	if observed := r.observed(resource); observed != nil && r.InProgressFinalizer == "" {
		return *observed > 0
	}
	return controllerutil.ContainsFinalizer(resource, r.Finalizer) || r.alias(resource) != ""
}

// observed is the generation that the status says was handled, nil when it does not say or it is another controller
// that does.
func (r *Opinionated[T]) observed(resource T) *int64 {
	if r.Handler.place.foreignStatus {
		return nil
	}
	return statusOf(resource).observedGeneration
}

// alias returns the former name by which the resource is kept, "" if it is not.
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
	if names := r.ours(); len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names) {
		errs = append(
			errs, fmt.Errorf("Opinionated %q must have different names in Finalizer, Aliases and InProgressFinalizer", r.Name),
		)
	}
	return errors.Join(errs...)
}

func (r *Opinionated[T]) validateName(field, name string) error {
	problems := kvalidation.IsQualifiedName(name)
	if !strings.Contains(name, "/") {
		problems = append(problems, "it needs a domain of its own")
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("Opinionated %q must have a qualified name such as example.com/myapp-widgets in %s, not %q: %s",
		r.Name, field, name, strings.Join(problems, "; "))
}

// Reconcile calls the handler with the finalizer in place, and clears the finalizer when the handler has dealt with the
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

// Absent is for a resource that does not exist. Its deletion was handled before its finalizer was cleared, unless
// somebody else has cleared it, or the resource is there and is only no longer among those that the controller sees:
// then it must not be kept.
func (r *Opinionated[T]) Absent(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error) {
	r.init()
	gone, _ := r.Handler.ledger.absent(req.NamespacedName)
	result, err := r.Handler.Absent(ctx, req)
	if gone == nil || err != nil {
		return result, err
	}
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return result, err
	}
	current := blankLike(gone)
	err = pastCache(config).Get(ctx, req.NamespacedName, current)
	if err != nil || current.GetUID() != gone.GetUID() || r.Handler.knows(req.NamespacedName) {
		return result, client.IgnoreNotFound(err)
	}
	return result, r.release(ctx, current)
}

// release takes all of our finalizers off.
func (r *Opinionated[T]) release(ctx context.Context, resource client.Object) error {
	for _, name := range r.ours() {
		if err := reconcilers.ClearFinalizer(ctx, resource, name); err != nil {
			return lookAgain(err)
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
	// Before the finalizer is there, which says that the resource was handled.
	if result, err := step.Run(ctx, step.Node{Name: r.Handler.Name}, resource, r.Handler.bury); err != nil {
		return result, err
	}
	if err := r.keep(ctx, resource); err != nil {
		return reconcilers.Result{}, lookAgain(err)
	}
	result, err := r.Handler.Reconcile(ctx, resource)
	if err != nil || !r.Handler.isAcked(resource) {
		return result, err
	}
	if r.InProgressFinalizer != "" && controllerutil.ContainsFinalizer(resource, r.InProgressFinalizer) {
		if err := reconcilers.ReplaceFinalizer(ctx, resource, r.InProgressFinalizer, r.Finalizer); err != nil {
			return result, lookAgain(err)
		}
	}
	observed := r.observed(resource)
	if !r.Handler.place.patchesStatus || observed == nil || *observed == resource.GetGeneration() {
		return result, nil
	}
	return result, observe(ctx, resource)
}

// keep sees to it that the resource cannot go without the handler being told.
func (r *Opinionated[T]) keep(ctx context.Context, resource T) error {
	handled := r.Handler.Handled(resource)
	if !handled && r.InProgressFinalizer == "" && r.observed(resource) == nil {
		// From now on the finalizer says otherwise.
		r.Handler.intend(resource, ReconcileActionCreated)
	}
	if alias := r.alias(resource); alias != "" {
		return reconcilers.ReplaceFinalizer(ctx, resource, alias, r.Finalizer)
	}
	if r.InProgressFinalizer != "" && !handled && !controllerutil.ContainsFinalizer(resource, r.Finalizer) {
		return reconcilers.AddFinalizer(ctx, resource, r.InProgressFinalizer)
	}
	return reconcilers.AddFinalizer(ctx, resource, r.Finalizer)
}

// finalize lets go of a resource that is being deleted, once the handler has returned without an error.
func (r *Opinionated[T]) finalize(ctx context.Context, resource T) (reconcilers.Result, error) {
	result, err := r.Handler.Reconcile(ctx, resource)
	if err != nil {
		return result, err
	}
	return result, r.release(ctx, resource)
}

// lookAgain makes somebody else having been faster no failure: the request is tried again.
func lookAgain(err error) error {
	if apierrs.IsConflict(err) || apierrs.IsInvalid(err) || apierrs.IsNotFound(err) {
		return errors.Join(reconcilers.ErrQuiet, err)
	}
	return err
}
