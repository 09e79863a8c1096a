// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/step"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = (*WithFinalizer[client.Object])(nil)
	_ validation.Validator         = (*WithFinalizer[client.Object])(nil)
)

// WithFinalizer lets nested reconcilers create state outside of the reach of the garbage collector and clean it up
// again. The finalizer is on the resource before the nested reconciler runs, and stays until the nested reconciler has
// returned without an error for a resource that is being deleted.
//
// Every WithFinalizer needs a finalizer of its own that never changes: two that share one, or one that is renamed, leak
// what they created or keep the resource from ever going away.
//
// RBAC, with the group and the plural of the reconciled resource:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;patch
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>/finalizers,verbs=update
type WithFinalizer[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `WithFinalizer`.
	Name string

	// Finalizer is the finalizer to set, a qualified name such as `websites.example.com/dns`. Required.
	Finalizer string

	// ReadyToClearFinalizer tells, after the nested reconciler returned without an error for a resource that is being
	// deleted, whether the finalizer can go. Returning false keeps it until a later request. Defaults to true.
	ReadyToClearFinalizer func(ctx context.Context, resource Type) bool

	// Reconciler is called with the finalizer in place. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
}

func (r *WithFinalizer[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "WithFinalizer"
		}
		if r.ReadyToClearFinalizer == nil {
			r.ReadyToClearFinalizer = func(context.Context, T) bool { return true }
		}
	})
}

// SetupWithManager validates the reconciler and sets up the nested one.
func (r *WithFinalizer[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUp(ctx, mgr, bldr, r.Name, r.Validate, nested(r.Reconciler))
}

// Validate checks the required fields and, when ctx asks for recursion, the nested reconciler.
func (r *WithFinalizer[T]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	if r.Finalizer == "" {
		problems.add("WithFinalizer %q must define Finalizer", r.Name)
	}
	if isNil(r.Reconciler) {
		problems.add("WithFinalizer %q must define Reconciler", r.Name)
	}
	problems.nested(ctx, r.Reconciler, "WithFinalizer %q must have a valid Reconciler", r.Name)
	declareFinalizer(ctx, &problems, r, fmt.Sprintf("WithFinalizer %q", r.Name), r.Finalizer)
	return problems.err()
}

// Reconcile adds or clears the finalizer around the nested reconciler.
func (r *WithFinalizer[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *WithFinalizer[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	if resource.GetDeletionTimestamp() == nil {
		if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
			return Result{}, err
		}
	}
	result, err := r.Reconciler.Reconcile(ctx, resource)
	if err != nil {
		return result, err
	}
	if resource.GetDeletionTimestamp() != nil && r.ReadyToClearFinalizer(ctx, resource) {
		if err := ClearFinalizer(ctx, resource, r.Finalizer); err != nil {
			return Result{}, err
		}
	}
	return result, nil
}

// AddFinalizer puts the finalizer on an object, the reconciled resource or any other, with a patch that fails when the
// object has changed meanwhile. It does nothing when the finalizer is there already or is empty. The object's
// finalizers, resource version and generation are updated in memory, and an event about the object says what has become
// of the patch.
//
// The reconciled resource is written as what it was loaded as, whatever it has been cast to since, see [CastResource],
// and with the config that loaded it. It is known by its namespace, its name, its kind and, where both are set, its
// uid. Any other object is written as what it is, with the current config, see [RetrieveConfig].
func AddFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	return patchFinalizers(ctx, resource, finalizer, "adding finalizer", func(names []string) []string {
		if slices.Contains(names, finalizer) {
			return names
		}
		return append(slices.Clip(names), finalizer)
	})
}

// ClearFinalizer takes the finalizer off an object. It is the reverse of [AddFinalizer].
func ClearFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	return patchFinalizers(ctx, resource, finalizer, "removing finalizer", func(names []string) []string {
		return without(names, finalizer)
	})
}

// ReplaceFinalizer takes the former finalizer off an object and puts the other one on, in one patch. It is
// [AddFinalizer] otherwise.
func ReplaceFinalizer(ctx context.Context, resource client.Object, former, finalizer string) error {
	return patchFinalizers(ctx, resource, finalizer, "replacing finalizer", func(names []string) []string {
		names = without(names, former)
		if slices.Contains(names, finalizer) {
			return names
		}
		return append(slices.Clip(names), finalizer)
	})
}

// without returns the names less one, in a new slice if that is among them.
func without(names []string, name string) []string {
	if !slices.Contains(names, name) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
}

func patchFinalizers(
	ctx context.Context, resource client.Object, finalizer, action string, change func(names []string) []string,
) error {
	if finalizer == "" {
		return nil
	}
	names := resource.GetFinalizers()
	changed := change(names)
	if slices.Equal(names, changed) {
		return nil
	}
	current, config, err := asLoaded(ctx, resource)
	if err != nil {
		return err
	}
	// Just what a patch of finalizers and an event about it need.
	current.SetNamespace(resource.GetNamespace())
	current.SetName(resource.GetName())
	current.SetUID(resource.GetUID())
	current.SetResourceVersion(resource.GetResourceVersion())
	current.SetGeneration(resource.GetGeneration())
	current.SetFinalizers(names)
	desired := current.DeepCopyObject().(client.Object)
	desired.SetFinalizers(changed)

	logr.FromContextOrDiscard(ctx).Info(action, "finalizer", finalizer)
	patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	if err := config.Patch(ctx, desired, patch); err != nil {
		if apierrs.IsNotFound(err) && resource.GetDeletionTimestamp() != nil {
			// The object is gone, and its finalizers with it: a cache that has not seen the end of it yet made us look
			// again.
			resource.SetFinalizers(nil)
			return nil
		}
		if !isSilent(ctx, err) {
			logr.FromContextOrDiscard(ctx).Error(err, "unable to patch finalizers", "finalizer", finalizer)
			config.Recorder.Eventf(current, corev1.EventTypeWarning, "FinalizerPatchFailed",
				"Failed to patch finalizer %q: %s", finalizer, err)
			step.Recorded(ctx, err)
		}
		return err
	}
	config.Recorder.Eventf(current, corev1.EventTypeNormal, "FinalizerPatched", "Patched finalizer %q", finalizer)

	// Only what the patch is about is copied back: the rest of the object may have been changed in memory by
	// reconcilers.
	resource.SetFinalizers(desired.GetFinalizers())
	resource.SetResourceVersion(desired.GetResourceVersion())
	resource.SetGeneration(desired.GetGeneration())
	return nil
}
