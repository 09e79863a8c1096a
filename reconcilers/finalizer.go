// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/step"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = (*WithFinalizer[client.Object])(nil)
	_ validation.Validator         = (*WithFinalizer[client.Object])(nil)
)

// WithFinalizer lets nested reconcilers create state outside of the reach of the garbage collector and clean it up again. The finalizer is on
// the resource before the nested reconciler runs, and stays until the nested reconciler has returned without an error for a resource that is being
// deleted.
//
// Every WithFinalizer needs a finalizer of its own that never changes: two that share one, or one that is renamed, leak what they created
// or keep the resource from ever going away.
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

	// ReadyToClearFinalizer tells, after the nested reconciler returned without an error for a resource that is being deleted, whether the
	// finalizer can go. Returning false keeps it until a later request. Defaults to true.
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

// AddFinalizer puts the finalizer on the reconciled resource, with a patch that fails when the resource has changed meanwhile. It does nothing
// when the finalizer is there already or is empty. The patch goes through the config that loaded the resource; the resource's finalizers,
// resource version and generation are updated in memory.
func AddFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	return patchFinalizer(ctx, resource, finalizer, "adding finalizer", controllerutil.AddFinalizer)
}

// ClearFinalizer takes the finalizer off the reconciled resource. It is the reverse of [AddFinalizer].
func ClearFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	return patchFinalizer(ctx, resource, finalizer, "removing finalizer", controllerutil.RemoveFinalizer)
}

// ReplaceFinalizer takes the former finalizer off the reconciled resource and puts the other one on, in one patch. It is [AddFinalizer] otherwise.
func ReplaceFinalizer(ctx context.Context, resource client.Object, former, finalizer string) error {
	return patchFinalizer(ctx, resource, finalizer, "replacing finalizer", func(obj client.Object, finalizer string) bool {
		removed := controllerutil.RemoveFinalizer(obj, former)
		return controllerutil.AddFinalizer(obj, finalizer) || removed
	})
}

func patchFinalizer(
	ctx context.Context, resource client.Object, finalizer, action string, change func(client.Object, string) bool,
) error {
	if finalizer == "" {
		return nil
	}
	current := finalizerTarget(ctx, resource)
	desired := current.DeepCopyObject().(client.Object)
	if !change(desired, finalizer) {
		return nil
	}
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}

	logr.FromContextOrDiscard(ctx).Info(action, "finalizer", finalizer)
	patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	if err := config.Patch(ctx, desired, patch); err != nil {
		if apierrs.IsNotFound(err) && resource.GetDeletionTimestamp() != nil {
			// The resource is gone, and its finalizers with it: a cache that has not seen the end of it yet made us look again.
			resource.SetFinalizers(nil)
			return nil
		}
		if !isSilent(ctx, err) {
			logr.FromContextOrDiscard(ctx).Error(err, "unable to patch finalizers", "finalizer", finalizer)
			config.Recorder.Eventf(resource, corev1.EventTypeWarning, "FinalizerPatchFailed",
				"Failed to patch finalizer %q: %s", finalizer, err)
		}
		return err
	}
	config.Recorder.Eventf(resource, corev1.EventTypeNormal, "FinalizerPatched", "Patched finalizer %q", finalizer)

	// Only what the patch is about is copied back: the rest of the resource may have been changed in memory by reconcilers.
	resource.SetFinalizers(desired.GetFinalizers())
	resource.SetResourceVersion(desired.GetResourceVersion())
	resource.SetGeneration(desired.GetGeneration())
	return nil
}

// finalizerTarget returns an object of the type the resource was loaded as, whatever it has been cast to since, that carries just what a patch
// of its finalizers needs.
func finalizerTarget(ctx context.Context, resource client.Object) client.Object {
	target := blankLike(resource)
	if original := RetrieveOriginalResourceType(ctx); original != nil {
		target = blankLike(original)
	}
	target.SetNamespace(resource.GetNamespace())
	target.SetName(resource.GetName())
	target.SetResourceVersion(resource.GetResourceVersion())
	target.SetGeneration(resource.GetGeneration())
	target.SetFinalizers(resource.GetFinalizers())
	return target
}
