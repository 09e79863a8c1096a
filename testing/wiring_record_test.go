// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/wiring"
)

func TestRecordWiring_Errors(t *testing.T) {
	onPurpose := errors.New("on purpose")
	for name, tc := range map[string]struct {
		setUp setUpFunc
		given []client.Object
		want  []string
	}{
		"all that is wrong with a tree": {
			setUp: wiredWith(
				&wiredSync{Name: "first"}, newWiredChild(func(r *wiredChild) { r.DesiredChild, r.MergeBeforeUpdate = nil, nil }),
			),
			want: []string{
				`set-up failed: `, `SyncReconciler "first" must implement Sync or SyncWithResult`,
				`ChildReconciler "ConfigMapChildReconciler" must implement DesiredChild`, `must implement ChildObjectManager`,
			},
		},
		"an error of Setup": {
			setUp: wiredBy(func(context.Context, ctrl.Manager, *reconcilers.Builder) error { return onPurpose }),
			want:  []string{"set-up failed: on purpose"},
		},
		"no controller": {
			setUp: func(context.Context, ctrl.Manager, reconcilers.Config) error { return nil },
			want:  []string{"set-up has not added a controller to the manager"},
		},
		"kinds that the scheme does not know, and a source that does not start": {
			setUp: wiredBy(func(_ context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
				bldr.Owns(&fixture.Duck{}).Watches(&unknownKind{}, &handler.EnqueueRequestForObject{})
				bldr.WatchesRawSource(source.Func(func(
					context.Context, workqueue.TypedRateLimitingInterface[reconcilers.Request],
				) error {
					return onPurpose
				}))
				return nil
			}),
			want: []string{
				"unable to start a controller: on purpose", "watch *fixture.Duck: no kind is registered",
				"watch *testing.unknownKind: no kind is registered",
			},
		},
		"a controller of something else": {
			setUp: func(_ context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				do := reconcile.TypedFunc[string](func(context.Context, string) (reconcilers.Result, error) {
					return reconcilers.Result{}, nil
				})
				_, err := controller.NewTyped("strings", mgr, controller.TypedOptions[string]{Reconciler: do})
				return err
			},
			want: []string{
				"cannot be recorded: it is not a controller of requests as controller-runtime builds them",
				"set-up has not added a controller",
			},
		},
		"an index that already exists": {
			setUp: func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				noValues := func(client.Object) []string { return nil }
				return errors.Join(
					mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "spec.nodeName", noValues),
					mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "spec.nodeName", noValues),
					mgr.GetFieldIndexer().IndexField(ctx, &unknownKind{}, "spec.nodeName", noValues),
				)
			},
			want: []string{
				"indexer conflict: k8s.io/api/core/v1.Pod by spec.nodeName already exists",
				"no kind is registered for the type testing.unknownKind",
			},
		},
		"objects that cannot be there": {
			setUp: wiredWith(), given: []client.Object{&unknownKind{}, &corev1.Secret{}, nil},
			want: []string{
				"given[0]: the kind of *testing.unknownKind is neither in the Scheme nor set on the object", "given[2]: ",
			},
		},
		"an object twice": {
			setUp: wiredWith(), given: []client.Object{&corev1.Secret{}, &corev1.Secret{}},
			want: []string{"given[1]: Secret / is the same object as [0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorded, err := recordWiring(t.Context(), wiringScheme(t), tc.setUp, tc.given...)
			if recorded != nil || err == nil {
				t.Fatalf("want an error, got %v", recorded)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in the error, got:\n%s", want, err)
				}
			}
		})
	}

	if _, err := recordWiring(t.Context(), nil, wiredWith()); err == nil || err.Error() != "a scheme is required" {
		t.Errorf("without a scheme: %v", err)
	}
}

// unknownKind is an object that no scheme knows.
type unknownKind struct{ corev1.ConfigMap }

func (u *unknownKind) DeepCopyObject() runtime.Object { return &unknownKind{*u.DeepCopy()} }

func TestRecordWiring_SourceThatBlocks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	release := make(chan struct{})
	defer close(release)
	_, err := recordWiring(ctx, wiringScheme(t), wiredBy(func(
		_ context.Context, _ ctrl.Manager, bldr *reconcilers.Builder,
	) error {
		bldr.WatchesRawSource(source.Func(func(
			context.Context, workqueue.TypedRateLimitingInterface[reconcilers.Request],
		) error {
			<-release
			return nil
		}))
		return nil
	}))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "one of its sources seems to block") {
		t.Errorf("got %v", err)
	}
}

func TestRecordWiring_ManagerBehavesAsInProduction(t *testing.T) {
	given := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "it"}}
	key, found := client.ObjectKeyFromObject(given), []string{}
	see := func(what string, err error) {
		notStarted := &cache.ErrCacheNotStarted{}
		switch {
		case err == nil:
			what += ": ok"
		case errors.As(err, &notStarted):
			what += ": cache not started"
		case apierrs.IsNotFound(err):
			what += ": not found"
		default:
			what += ": " + err.Error()
		}
		found = append(found, what)
	}
	RecordWiring(t, wiringScheme(t), func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		see("get through the cache", mgr.GetClient().Get(ctx, key, &corev1.ConfigMap{}))
		see("list through the cache", config.List(ctx, &corev1.ConfigMapList{}))
		see("get unstructured", mgr.GetClient().Get(ctx, key, unstructuredKind("v1", "ConfigMap")))
		see("get from the API", config.APIReader.Get(ctx, key, &corev1.ConfigMap{}))
		see("get from another API", OtherCluster(t, mgr, "remote").GetAPIReader().Get(ctx, key, &corev1.ConfigMap{}))
		see("create", config.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"}}))
		_, err := config.Discovery.ServerVersion()
		see("ask the server", err)
		config.Recorder.Event(given, corev1.EventTypeNormal, "Reason", "message")
		config.Eventf(given, nil, corev1.EventTypeNormal, "Reason", "action", "note")
		select {
		case <-mgr.Elected():
			t.Error("the manager is elected although it was not started")
		default:
		}
		bldr := ctrl.NewControllerManagedBy(mgr).For(&fixture.Resource{})
		return bldr.Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(
			ctx context.Context, obj client.Object,
		) []reconcilers.Request {
			if obj.GetName() == given.Name && len(found) == 7 {
				see("get in a mapping", mgr.GetClient().Get(ctx, key, &corev1.ConfigMap{}))
				see("list in a mapping", mgr.GetClient().List(ctx, &corev1.ConfigMapList{}))
				see("list from the cache in a mapping", mgr.GetCache().List(ctx, &corev1.SecretList{}))
			}
			return nil
		})).Complete(neverCalled(t))
	}, given)
	want := []string{
		"get through the cache: cache not started", "list through the cache: cache not started", "get unstructured: ok",
		"get from the API: ok",
		"get from another API: not found", "create: ok", "ask the server: " +
			`Get "http://offline.invalid/version?timeout=32s": GET /version: this manager has no API server: ` +
			"use its clients",
		"get in a mapping: ok", "list in a mapping: ok", "list from the cache in a mapping: ok",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("what set-up sees (-want +got):\n%s", diff)
	}
}

func TestOtherCluster_NeedsTheManager(t *testing.T) {
	RecordWiring(t, wiringScheme(t), func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		first := OtherCluster(t, mgr, "remote")
		if second := OtherCluster(t, mgr, "remote"); second != first {
			t.Error("the same name is another cluster")
		}
		for want, call := range map[string]func() (ctrlcluster.Cluster, error){
			`cluster "remote": the manager must be the one of RecordWiring, not a struct { manager.Manager }`: func() (
				ctrlcluster.Cluster, error,
			) {
				return wiring.OtherCluster(struct{ ctrl.Manager }{mgr}, "remote")
			},
			"cluster: a name is required, the one without is that of the manager": func() (ctrlcluster.Cluster, error) {
				return wiring.OtherCluster(mgr, "")
			},
		} {
			if _, err := call(); fmt.Sprint(err) != want {
				t.Errorf("want %q, got %v", want, err)
			}
		}
		return wiredWith()(ctx, mgr, config)
	})
}

func TestRecordWiring_LeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	setUp := func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		for _, name := range []string{"first", "second"} {
			build := func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.Named(name).For(&fixture.Resource{}).WithOptions(controller.Options{MaxConcurrentReconciles: 10})
				bldr.WatchesRawSource(source.Channel(make(chan event.GenericEvent), &handler.EnqueueRequestForObject{}))
			}
			if err := wiredPlain(t, build)(ctx, mgr, config); err != nil {
				return err
			}
		}
		config.Recorder.Event(&fixture.Resource{}, corev1.EventTypeNormal, "Reason", "message")
		return nil
	}
	RecordWiring(t, wiringScheme(t), setUp)
	goleak.VerifyNone(t, before)
}

func BenchmarkRecordWiring(b *testing.B) {
	scheme := wiringScheme(b)
	for b.Loop() {
		if _, err := recordWiring(b.Context(), scheme, wiredWith(newWiredChild(), tracking(&corev1.Secret{}))); err != nil {
			b.Fatal(err)
		}
	}
}
