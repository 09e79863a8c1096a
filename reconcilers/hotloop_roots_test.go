// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

type aggregateWork = func(context.Context, *loopWorld, *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error)

// newAggregateLoop returns a world whose resource is a ConfigMap that an aggregate manages.
func newAggregateLoop(t *testing.T, do aggregateWork, given ...client.Object) *loopWorld {
	l := &loopWorld{world: newWorld(t, given...)}
	l.reconcile = newAggregate(l.world, func(r *aggregateReconciler) {
		r.Config = l.config()
		var desired *corev1.ConfigMap
		r.Reconciler = &configMapSync{
			SyncWithResult: func(ctx context.Context, r *corev1.ConfigMap) (result reconcilers.Result, err error) {
				l.works()
				desired, result, err = do(ctx, l, r)
				return result, err
			},
		}
		r.DesiredResource = func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return desired, nil }
	}).ReconcileManaged
	return l
}

func TestHotLoop_OfAnAggregate(t *testing.T) {
	const step = "ConfigMapAggregateReconciler"
	existing := newConfigMap("test", orphan)
	for name, tc := range map[string]struct {
		do      aggregateWork
		given   []client.Object
		repeats string // none if empty
		noEvent bool   // a loop without a resource to record an event on
	}{
		"RequeueAfter: 1ns": {
			do: func(_ context.Context, _ *loopWorld, r *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				return r, reconcilers.Result{RequeueAfter: 1}, nil
			},
			given:   []client.Object{existing},
			repeats: step + ".SyncReconciler returns RequeueAfter 1ns",
		},
		"random content": {
			do: func(_ context.Context, l *loopWorld, r *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				r.Data = number(l)
				return r, reconcilers.Result{}, nil
			},
			// The history of a resource begins after its creation.
			repeats: step + " updates ConfigMap default/test: data[nonce] (a new value in each of the last 99 writes)",
		},
		"created and deleted alternately": {
			do: func(_ context.Context, l *loopWorld, r *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				if l.ran%2 == 0 {
					r = nil
				}
				return r, reconcilers.Result{}, nil
			},
			noEvent: true,
		},
		"RequeueAfter: 1ns without a resource": {
			do: func(context.Context, *loopWorld, *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				return nil, reconcilers.Result{RequeueAfter: 1}, nil
			},
			noEvent: true,
		},
		"steady content": {
			do: func(_ context.Context, _ *loopWorld, r *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				r.Data = map[string]string{"key": "value"}
				return r, reconcilers.Result{}, nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newAggregateLoop(t, tc.do, tc.given...)
			synctest.Test(t, func(t *testing.T) {
				labels := map[string]string{"controller": step}
				found := apitest.Counted(t, "trueup_hot_loops_total", labels)
				want := 1.0
				switch {
				case tc.repeats != "":
					l.isDelayed(t, 120, tc.repeats)
				case tc.noEvent:
					if ran := l.run(3 * time.Minute); ran < 100 || ran > 120 {
						t.Errorf("%d reconciles in three minutes, want at most 120", ran)
					}
				default:
					want = 0
					l.between = func() {}
					if ran := l.run(600 * time.Millisecond); ran < 115 {
						t.Errorf("%d reconciles in 600 ms, want no delay", ran)
					}
					equal(t, "warnings", nil, l.warnings())
				}
				if got := apitest.Counted(t, "trueup_hot_loops_total", labels) - found; got != want {
					t.Errorf("%v hot loops are counted, want %v", got, want)
				}
			})
		})
	}
}

// applied returns a reconciler that applies a ConfigMap on the server, with a patch or with an apply configuration.
func applied(patch bool, data func(l *loopWorld) map[string]string) work {
	return func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		if !patch {
			return reconcilers.Result{}, c.Apply(ctx, corev1apply.ConfigMap("child", r.Namespace).WithData(data(l)),
				client.ForceOwnership, client.FieldOwner("test"))
		}
		cm := wanted("child")
		cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		cm.Data = data(l)
		//nolint:staticcheck // users still use it
		return reconcilers.Result{}, c.Patch(ctx, cm, client.Apply, client.ForceOwnership, client.FieldOwner("test"))
	}
}

func TestHotLoop_OfServerSideApply(t *testing.T) {
	steady := func(*loopWorld) map[string]string { return map[string]string{"key": "value"} }
	for name, tc := range map[string]struct {
		do      work
		repeats string // none if empty
	}{
		"patch, random content": {
			do: applied(true, number), repeats: "ResourceResourceReconciler.1.Work patches ConfigMap default/child",
		},
		"apply, random content": {
			do: applied(false, number), repeats: "ResourceResourceReconciler.1.Work applies ConfigMap default/child",
		},
		"patch, steady content": {do: applied(true, steady)},
		"apply, steady content": {do: applied(false, steady)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoopWorldOn(newWorldOn(t, newApplyingTracker, newResource(settled)), tc.do)
			synctest.Test(t, func(t *testing.T) {
				if tc.repeats != "" {
					l.isDelayed(t, 120, tc.repeats)
					return
				}
				// An object that the reconciler does not read triggers the reconciles.
				l.between = func() {}
				if ran := l.run(600 * time.Millisecond); ran < 115 {
					t.Errorf("%d reconciles in 600 ms, want no delay", ran)
				}
				equal(t, "warnings", nil, l.warnings())
			})
		})
	}
}

// applyingTracker is the store of a server that supports server-side apply of ConfigMaps. Like a server, and unlike
// client-go's tracker, it stores nothing if an apply changes nothing.
type applyingTracker struct{ clienttesting.ObjectTracker }

func newApplyingTracker(_ clienttesting.ObjectScheme, decoder runtime.Decoder) clienttesting.ObjectTracker {
	// A scheme with fewer kinds is faster, see newWorldOn.
	kinds := runtime.NewScheme()
	kinds.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{})
	kinds.AddKnownTypes(fixture.GroupVersion, &fixture.Resource{})
	converter := managedfields.NewDeducedTypeConverter() // creating a converter with schemas takes a second
	return applyingTracker{clienttesting.NewFieldManagedObjectTracker(kinds, decoder, converter)}
}

func (t applyingTracker) Apply(
	gvr schema.GroupVersionResource, configuration runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	name := configuration.(client.Object).GetName()
	before, _ := t.Get(gvr, ns, name)
	if err := t.ObjectTracker.Apply(gvr, configuration, ns, opts...); err != nil || before == nil {
		return err
	}
	after, err := t.Get(gvr, ns, name)
	if err != nil || !equality.Semantic.DeepEqual(before.(*corev1.ConfigMap).Data, after.(*corev1.ConfigMap).Data) {
		return err
	}
	return t.Update(gvr, before, ns)
}
