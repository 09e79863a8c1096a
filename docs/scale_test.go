// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/shards"
)

// region scale-cache
func NewManager(cfg *rest.Config) (ctrl.Manager, error) {
	return ctrl.NewManager(cfg, ctrl.Options{
		Cache: cache.Options{DefaultTransform: reconcilers.CacheTransform()},
	})
}

// endregion

func TestScale_theCacheHoldsLessOfEachObject(t *testing.T) {
	if _, err := NewManager(&rest.Config{}); err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.com/kept": "yes"},
	}}
	if _, err := reconcilers.CacheTransform()(object); err != nil {
		t.Fatal(err)
	}
	if len(object.ManagedFields) > 0 || object.Annotations[corev1.LastAppliedConfigAnnotation] != "" ||
		object.Annotations["example.com/kept"] != "yes" {
		t.Errorf("got %+v", object.ObjectMeta)
	}
}

// provenReplica returns a replica in a scenario.
func provenReplica(name string, setUp func(ctrl.Manager, *shards.Shard) error) converge.Program {
	// region scale-proof
	replica := converge.Program{
		Name: name,
		Assigned: func(website client.Object) bool {
			return website.GetLabels()[shards.ShardLabel("websites")] == name
		},
		Setup: func(mgr ctrl.Manager) error {
			shard, err := shards.New(shards.Options{
				Ring: "websites", Shard: name, Namespace: "default",
				Kinds: []client.Object{&websitev1.Website{}, &corev1.ConfigMap{}},
			})
			if err != nil {
				return err
			}
			options, err := shard.ManagerOptions(mgr.GetConfig(), ctrl.Options{
				Scheme: mgr.GetScheme(), Logger: mgr.GetLogger(),
				LeaseDuration: new(2 * time.Hour), RenewDeadline: new(80 * time.Minute), RetryPeriod: new(50 * time.Minute),
			})
			if err != nil {
				return err
			}
			if err := converge.ApplyOptions(mgr, options); err != nil {
				return err
			}
			return setUp(mgr, shard)
		},
	}
	// endregion
	return replica
}

func TestScale_aReplicaInAScenario(t *testing.T) {
	website := &websitev1.Website{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "a", Labels: map[string]string{shards.ShardLabel("websites"): "one"},
	}}
	setUp := func(mgr ctrl.Manager, shard *shards.Shard) error {
		reconciler := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		})
		return ctrl.NewControllerManagedBy(mgr).Named(shard.Name()).For(&websitev1.Website{}).Complete(reconciler)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, websitev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	converge.Run(t, converge.Scenario{
		Scheme: scheme, For: &websitev1.Website{}, Setup: func(ctrl.Manager) error { return nil },
		Programs: []converge.Program{provenReplica("one", setUp), provenReplica("two", setUp)},
		Steps:    converge.Steps(converge.Apply(website), converge.Settle()),
	})
}

func startReplica(restConfig *rest.Config, scheme *runtime.Scheme) error {
	// region scale-replica
	// In Kubernetes, the name of the shard is the name of the pod, and the Leases are in its namespace.
	shard, err := shards.New(shards.Options{
		Ring:  "websites",
		Kinds: []client.Object{&websitev1.Website{}, &corev1.ConfigMap{}}, // the reconciled kind, and its children
	})
	if err != nil {
		return err
	}
	options, err := shard.ManagerOptions(restConfig, ctrl.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(restConfig, options)
	if err != nil {
		return err
	}
	config := reconcilers.NewConfig(mgr, &websitev1.Website{}, 0)
	config.Shard = shard
	// endregion
	_ = config
	return nil
}

func plainReplica(mgr ctrl.Manager, shard *shards.Shard, reconciler reconcile.Reconciler) error {
	// region scale-plain
	err := ctrl.NewControllerManagedBy(mgr).
		For(&websitev1.Website{}, builder.WithPredicates(shard.Predicate(predicate.GenerationChangedPredicate{}))).
		Owns(&corev1.ConfigMap{}).
		Complete(shard.Reconciler(mgr.GetClient(), &websitev1.Website{}, reconciler))
	// endregion
	return err
}

var _, _ = startReplica, plainReplica
