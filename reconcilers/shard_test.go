// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/shards"
	"trueup.dev/tracker"
)

// Labels of the shards of these tests.
var shardLabel, drainLabel = shards.ShardLabel("ring"), shards.DrainLabel("ring")

// newShardConfig returns a config of shard a, with clients that stand for its cache and for the API server.
func newShardConfig(t *testing.T, cached, live client.Client) reconcilers.Config {
	t.Helper()
	shard, err := shards.New(shards.Options{
		Ring: "ring", Shard: "a", Namespace: "default", Kinds: objects{&fixture.Resource{}, &corev1.ConfigMap{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reconcilers.Config{
		Client: cached, APIReader: live, Tracker: tracker.New(scheme, time.Hour), Shard: shard,
	}
}

func withLabels[T client.Object](obj T, name string, labels ...string) T {
	set := map[string]string{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		set[key] = value
	}
	obj.SetNamespace("default")
	obj.SetName(name)
	obj.SetLabels(set)
	return obj
}

func TestResourceReconciler_OfAShard(t *testing.T) {
	ours, drain := shardLabel+"=a", drainLabel+"=true"
	for name, tc := range map[string]struct {
		cached, live client.Object
		// late reports whether only the second read finds the object, because it is a read from the API server.
		late bool
		// want are the functions of the user that are called.
		want       []string
		wantLabels []string
	}{
		"ours": {
			cached: withLabels(&fixture.Resource{}, "x", ours), want: []string{"skip", "sync"}, wantLabels: []string{shardLabel},
		},
		"drained": {
			cached: withLabels(&fixture.Resource{}, "x", ours, drain, "other=1"), wantLabels: []string{"other"},
		},
		"not ours": {cached: withLabels(&fixture.Resource{}, "x", shardLabel+"=b"), wantLabels: []string{shardLabel}},
		"moved":    {live: withLabels(&fixture.Resource{}, "x", shardLabel+"=b"), want: []string{"skip"}},
		"another's, which the API server returns": {
			cached: withLabels(&fixture.Resource{}, "x", shardLabel+"=b"), late: true, want: []string{"skip"},
			live: withLabels(&fixture.Resource{}, "x", shardLabel+"=b"), wantLabels: []string{shardLabel},
		},
		"drained, which the API server returns": {
			cached: withLabels(&fixture.Resource{}, "x", ours, drain), late: true, want: []string{"skip"},
			live: withLabels(&fixture.Resource{}, "x", ours, drain),
		},
		"does not exist": {want: []string{"skip", "absent"}},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(obj client.Object) client.WithWatch {
				b := fake.NewClientBuilder().WithScheme(scheme)
				if obj != nil {
					b.WithObjects(obj)
				}
				return b.Build()
			}
			cached := build(tc.cached)
			var calls []string
			r := &reconcilers.ResourceReconciler[*fixture.Resource]{
				SkipStatusUpdate: true,
				SkipRequest:      func(context.Context, reconcilers.Request) bool { calls = append(calls, "skip"); return false },
				Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
					Sync: func(context.Context, *fixture.Resource) error { calls = append(calls, "sync"); return nil },
				},
				ReconcileAbsent: func(context.Context, reconcilers.Request) (reconcilers.Result, error) {
					calls = append(calls, "absent")
					return reconcilers.Result{}, nil
				},
				Config: newShardConfig(t, interceptor.NewClient(cached, interceptor.Funcs{Get: func(
					ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
				) error {
					if tc.late {
						tc.late = false
						key.Name = "unknown"
					}
					return c.Get(ctx, key, obj, opts...)
				}}), build(tc.live)),
			}
			key := client.ObjectKey{Namespace: "default", Name: "x"}
			if _, err := r.Reconcile(t.Context(), reconcilers.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, calls); diff != "" {
				t.Errorf("unexpected calls (-want +got):\n%s", diff)
			}
			after := &fixture.Resource{}
			if err := cached.Get(t.Context(), key, after); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantLabels, slices.Sorted(maps.Keys(after.Labels))); diff != "" {
				t.Errorf("unexpected labels (-want +got):\n%s", diff)
			}
		})
	}
}

// A replica that tracks objects of a divided kind does not see all of them, which is logged once.
func TestConfig_TracksADividedKind(t *testing.T) {
	var logged []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	stored := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(withLabels(&fixture.Resource{}, "x", shardLabel+"=a")).Build()
	c := newShardConfig(t, stored, stored)
	r := &reconcilers.ResourceReconciler[*fixture.Resource]{
		SkipStatusUpdate: true, Config: c,
		Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(ctx context.Context, _ *fixture.Resource) error {
				for _, tracked := range (objects{&corev1.ConfigMap{}, &corev1.Secret{}}) {
					err := c.TrackAndGet(ctx, client.ObjectKey{Namespace: "default", Name: "tracked"}, tracked)
					if client.IgnoreNotFound(err) != nil {
						return err
					}
				}
				return nil
			},
		},
	}
	for range 2 {
		if _, err := r.Reconcile(ctx, requestOfX()); err != nil {
			t.Fatal(err)
		}
	}
	logged = slices.DeleteFunc(logged, func(line string) bool { return !strings.Contains(line, "Config.Shard") })
	if len(logged) != 1 || !strings.Contains(logged[0], "objects of kind ConfigMap are tracked") {
		t.Errorf("unexpected log: %q", logged)
	}
}

// A request of a replica without its Lease is repeated later, and counted as one that waits for the lease.
func TestResourceReconciler_OfALapsedShard(t *testing.T) {
	stored := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(withLabels(&fixture.Resource{}, "x", shardLabel+"=a")).Build()
	c := newShardConfig(t, stored, stored)
	options, err := c.Shard.ManagerOptions(&rest.Config{}, ctrl.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	// The release of the Lease fails, but it may have been stored.
	if err := options.LeaderElectionResourceLockInterface.Update(
		t.Context(), resourcelock.LeaderElectionRecord{},
	); err == nil {
		t.Fatal("a Lease was released that does not exist")
	}
	r := &reconcilers.ResourceReconciler[*fixture.Resource]{
		Name: "lapsed", SkipStatusUpdate: true, Config: c,
		Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(context.Context, *fixture.Resource) error { return errors.New("reconciled without the Lease") },
		},
	}
	waits := apitest.Counting(t, "trueup_lease_waits_total", map[string]string{"controller": "lapsed"})
	result, err := r.Reconcile(t.Context(), requestOfX())
	if want := (reconcilers.Result{RequeueAfter: time.Second}); err != nil || result != want {
		t.Errorf("result %v, error %v, want %v", result, err, want)
	}
	if waits := waits(); waits != 1 {
		t.Errorf("%v requests wait for the lease, want 1", waits)
	}
}

// A child gets the label of its shard, and keeps the label that it has.
func TestChildReconciler_OfAShard(t *testing.T) {
	parent := withLabels(&fixture.Resource{ObjectMeta: metav1.ObjectMeta{UID: "parent"}}, "x", shardLabel+"=a")
	child := func(labels ...string) *corev1.ConfigMap {
		c := withLabels(&corev1.ConfigMap{}, "child", append(labels, "app=x")...)
		c.CreationTimestamp = metav1.Now()
		c.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(parent, fixture.GroupVersion.WithKind("Resource")),
		}
		return c
	}
	for name, tc := range map[string]struct {
		cached, live *corev1.ConfigMap
		want         string
		// reports whether the child is written.
		written bool
	}{
		"created":             {want: "a", written: true},
		"in the cache":        {cached: child(shardLabel + "=a"), want: "a"},
		"without a label":     {live: child(), want: "a", written: true},
		"moved ahead already": {live: child(shardLabel + "=b"), want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			// The cache selects by label.
			stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(parent.DeepCopy())
			for _, obj := range []*corev1.ConfigMap{tc.cached, tc.live} {
				if obj != nil {
					stored.WithObjects(obj)
				}
			}
			api := stored.Build()
			before := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: "default", Name: "child"}
			_ = api.Get(t.Context(), key, before)
			r := &reconcilers.ResourceReconciler[*fixture.Resource]{
				SkipStatusUpdate: true,
				Reconciler: &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
					DesiredChild: func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) {
						return withLabels(&corev1.ConfigMap{}, "child", "app=x"), nil
					},
					MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Labels = desired.Labels },
					ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
				},
				Config: newShardConfig(t, selecting{api, shardLabel, "a"}, api),
			}
			if _, err := r.Reconcile(t.Context(), requestOfX()); err != nil {
				t.Fatal(err)
			}
			after := &corev1.ConfigMap{}
			if err := api.Get(t.Context(), key, after); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"app": "x", shardLabel: tc.want}
			if diff := cmp.Diff(want, after.Labels); diff != "" {
				t.Errorf("unexpected labels (-want +got):\n%s", diff)
			}
			if written := before.ResourceVersion != after.ResourceVersion; written != tc.written {
				t.Errorf("written: %v, want %v", written, tc.written)
			}
		})
	}
}

// selecting is a client that reads only objects with a label, as from a cache.
type selecting struct {
	client.Client
	key, value string
}

func (s selecting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.Client.List(ctx, list, append(opts, client.MatchingLabels{s.key: s.value})...)
}

func requestOfX() reconcilers.Request {
	return reconcilers.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "x"}}
}

func TestValidate_OfAShard(t *testing.T) {
	c := newShardConfig(t, fake.NewClientBuilder().WithScheme(scheme).Build(), nil)
	for name, tc := range map[string]struct {
		reconciler interface {
			Validate(ctx context.Context) error
		}
		want string
	}{
		"one resource": {
			reconciler: &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
				Request: requestOfX(), Config: c, MergeBeforeUpdate: func(_, _ *corev1.ConfigMap) {},
			},
			want: `AggregateReconciler "ConfigMapAggregateReconciler" must not define Config.Shard: its resource cannot be ` +
				"divided among replicas",
		},
		"a kind that is not divided": {
			reconciler: &reconcilers.ResourceReconciler[*corev1.Secret]{
				Config: c, Reconciler: reconcilers.Sequence[*corev1.Secret]{},
			},
			want: `ResourceReconciler "SecretResourceReconciler" must have a type that is one of the Kinds of ` +
				"Config.Shard, or no Config.Shard",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.reconciler.Validate(t.Context())
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	ctx := reconcilers.StashConfig(t.Context(), c)
	err := (&reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		SkipOwnerReference: true,
		ListOptions:        func(context.Context, *fixture.Resource) []client.ListOption { return nil },
		OurChild:           func(*fixture.Resource, *corev1.ConfigMap) bool { return true },
		DesiredChild:       func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) { return nil, nil },
		MergeBeforeUpdate:  func(_, _ *corev1.ConfigMap) {},
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {
		},
	}).Validate(ctx)
	if want := "must not skip owner references"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
