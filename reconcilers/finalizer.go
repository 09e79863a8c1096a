// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*WithFinalizer[client.Object])(nil)

// WithFinalizer adds a finalizer to the resource before the nested reconciler runs, so that the nested reconciler can
// create and clean up state that is not garbage-collected. The finalizer is removed when the nested reconciler returns
// no error for a resource that is being deleted, or in a step of [Steps] that is removed.
//
// Every WithFinalizer needs a unique finalizer that never changes. With a shared or renamed finalizer, external state
// is leaked or the resource is never deleted.
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

	// ReadyToClearFinalizer reports whether to remove the finalizer. It is called after the nested reconciler returned
	// no error for a resource that is being deleted. If it returns false, the finalizer is kept until a later request.
	// Until then, an enclosing WithFinalizer keeps its finalizer too, [Steps] do not remove the steps before, and [Prune]
	// deletes nothing. The reconcilers that follow in a [Sequence] run. If this takes longer than 5 minutes, a controller
	// records the Warning event RemovalStuck, once. Defaults to a function that returns true.
	ReadyToClearFinalizer func(ctx context.Context, resource Type) bool

	// Reconciler is called after the finalizer was added. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
	// waits has the resources whose finalizer is not ready to be cleared.
	waits perItem[finalizerWait]
}

// finalizerWait is the time since which a finalizer is not ready to be cleared. recorded reports whether an event says
// so.
type finalizerWait struct {
	since    time.Time
	recorded bool
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

// SetupWithManager validates the reconciler and sets up Reconciler.
func (r *WithFinalizer[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *WithFinalizer[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *WithFinalizer[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *WithFinalizer[T]) describe(d *description) {
	r.init()
	d.is("WithFinalizer", r.Name)
	d.require(r.Finalizer != "", "must define Finalizer")
	d.require(given(r.Reconciler), "must define Reconciler")
	d.accesses(func(n *graph.Node) { n.Finalizer(r.Finalizer) })
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
	d.check(func(ctx context.Context, problems *problems) {
		problems.requests(ctx, d.label, true)
		declareFinalizer(ctx, problems, r, d.label, r.Finalizer)
	})
}

// Reconcile adds the finalizer before Reconciler runs, or removes it afterwards.
func (r *WithFinalizer[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *WithFinalizer[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	removing := MustRemove(ctx, resource)
	if !removing {
		r.waits.forget(ctx, resource)
		if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
			return Result{}, err
		}
		return r.Reconciler.Reconcile(ctx, resource)
	}
	below, held := scopeFrom(ctx), atomic.Bool{}
	below.held = &held
	result, err := r.Reconciler.Reconcile(below.onto(ctx), resource)
	if err != nil {
		return result, err
	}
	switch {
	case !r.ReadyToClearFinalizer(ctx, resource):
		why := fmt.Sprintf("finalizer %s is not ready to be cleared", r.Finalizer)
		unfinished(ctx, why)
		result = AggregateResults(result, r.recordWait(ctx, resource, why))
	case held.Load():
		unfinished(ctx, "") // the reconciler below has said why
	default:
		if err := ClearFinalizer(ctx, resource, r.Finalizer); err != nil {
			return Result{}, err
		}
		r.waits.forget(ctx, resource)
	}
	return result, nil
}

// recordWait records that the finalizer has not been ready to be cleared for a long time, once. It requests a reconcile
// at that time. [Steps] with a condition do so for what is in them.
func (r *WithFinalizer[T]) recordWait(ctx context.Context, resource T, why string) Result {
	if !inController(ctx) || stepRunFrom(ctx).announces() {
		return Result{}
	}
	now := rtime.RetrieveNow(ctx)
	wait, known := r.waits.get(ctx, resource)
	if !known {
		wait.since = now
	}
	due := wait.since.Add(removalDeadline)
	isDue := !wait.recorded && !now.Before(due)
	wait.recorded = wait.recorded || isDue
	r.waits.put(ctx, resource, wait, now, now.Add(stateTTL))
	switch {
	case isDue:
		RetrieveOriginalConfigOrDie(ctx).recorder().Eventf(resource, corev1.EventTypeWarning, ReasonRemovalStuck,
			"%s since %s, longer than %s", why, wait.since.UTC().Format(time.RFC3339), removalDeadline)
	case !wait.recorded:
		return Result{RequeueAfter: due.Sub(now)}
	}
	return Result{}
}

// AddFinalizer adds the finalizer to an object, the reconciled resource or any other object, with a patch. The patch
// fails if the object has changed since it was read. AddFinalizer does nothing if the finalizer is empty or already
// set. It updates the finalizers, resource version and generation of the object in memory, and records the result of
// the patch as an event about the object.
//
// The reconciled resource is patched with its original type, even below a [CastResource], and with the config that
// loaded it. It is identified by namespace, name, kind and, if both are set, UID. Any other object is patched with its
// own type and the current config, see [RetrieveConfig].
func AddFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	return patchFinalizers(ctx, resource, finalizer, "adding finalizer", func(names []string) []string {
		if slices.Contains(names, finalizer) {
			return names
		}
		return append(slices.Clip(names), finalizer)
	})
}

// ClearFinalizer removes the finalizer from an object. It is the inverse of [AddFinalizer].
func ClearFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	return patchFinalizers(ctx, resource, finalizer, "removing finalizer", func(names []string) []string {
		return without(names, finalizer)
	})
}

// ReplaceFinalizer removes the finalizer former from an object and adds finalizer, in one patch. Otherwise it works
// like [AddFinalizer].
func ReplaceFinalizer(ctx context.Context, resource client.Object, former, finalizer string) error {
	return patchFinalizers(ctx, resource, finalizer, "replacing finalizer", func(names []string) []string {
		names = without(names, former)
		if slices.Contains(names, finalizer) {
			return names
		}
		return append(slices.Clip(names), finalizer)
	})
}

// without returns names without name. It does not change its argument.
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
	current, config, err := identityAsLoaded(ctx, resource)
	if err != nil {
		return err
	}
	if config.Client == nil {
		return fmt.Errorf("%s %q: the Config has no client, set Config of the AdmissionWebhookAdapter", action, finalizer)
	}
	current.SetFinalizers(names)
	desired := current.DeepCopyObject().(client.Object)
	desired.SetFinalizers(changed)

	logr.FromContextOrDiscard(ctx).Info(action, "finalizer", finalizer)
	patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	if err := config.Patch(ctx, desired, patch); err != nil {
		if apierrs.IsNotFound(err) && resource.GetDeletionTimestamp() != nil {
			// The object and its finalizers no longer exist. A stale cache triggered another reconcile.
			resource.SetFinalizers(nil)
			return nil
		}
		if !isSilent(ctx, err) {
			logr.FromContextOrDiscard(ctx).Error(err, "unable to patch finalizers", "finalizer", finalizer)
			config.recorder().Eventf(current, corev1.EventTypeWarning, "FinalizerPatchFailed",
				"Failed to patch finalizer %q: %s", finalizer, err)
			step.Recorded(ctx, err)
		}
		return err
	}
	config.recorder().Eventf(current, corev1.EventTypeNormal, "FinalizerPatched", "Patched finalizer %q", finalizer)

	// Copy only the result of the patch. Reconcilers may have changed other fields in memory.
	resource.SetFinalizers(desired.GetFinalizers())
	resource.SetResourceVersion(desired.GetResourceVersion())
	resource.SetGeneration(desired.GetGeneration())
	return nil
}
