// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// withManager is set up by most plain reconcilers' signature.
type withManager struct{ t *testing.T }

func (r withManager) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(neverCalled(r.t))
}

// withContext is set up by the signature of trueup's own.
type withContext struct{ withManager }

func (r withContext) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if len(reconcilers.RetrieveAdditionalConfigs(ctx)) != 1 {
		r.t.Error("the additional config is not on the context")
	}
	return r.withManager.SetupWithManager(mgr)
}

func TestRecordReconciler_Signatures(t *testing.T) {
	for name, product := range map[string]any{
		"manager": withManager{t}, "context and manager": withContext{withManager{t}},
	} {
		wiring, err := recordReconciler(
			t.Context(), wiringScheme(t), func(reconcilers.Config) any { return product }, map[string]ExpectConfig{"remote": {}},
			nil,
		)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wiring.Assert(t, &Wiring{For: watchesOf(&corev1.Pod{})})
	}
	_, err := recordReconciler(
		t.Context(), wiringScheme(t), func(reconcilers.Config) any { return neverCalled(t) }, nil, nil,
	)
	want := "must have a method SetupWithManager(context.Context, ctrl.Manager) error or SetupWithManager(ctrl.Manager) " +
		"error"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}
}

func TestRecordSubReconciler(t *testing.T) {
	factory := func(config reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		return wiredSequence{
			newWiredChild(),
			&reconcilers.WithConfig[*fixture.Resource]{
				Config: func(ctx context.Context, current reconcilers.Config) (reconcilers.Config, error) {
					if current != config {
						t.Error("the config of the set-up is not the one of the factory")
					}
					return reconcilers.RetrieveAdditionalConfigs(ctx)["remote"], nil
				},
				Reconciler: newWiredChild(withoutOwnerReference),
			},
			&wiredSync{
				Sync: func(context.Context, *fixture.Resource) error { return nil },
				Setup: func(_ context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
					bldr.Owns(&corev1.Secret{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
					return nil
				},
			},
		}
	}
	wiring, err := recordSubReconciler(
		t.Context(), wiringScheme(t), &fixture.Resource{}, factory, map[string]ExpectConfig{"remote": {}}, nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	wiring.Assert(t, &Wiring{
		Owns: []Watch{
			{Object: &corev1.Secret{}, Ignores: append([]Change{SpecChanged, DeletionRequested}, generationIgnores...)},
			{Object: &corev1.ConfigMap{}},
		},
		Tracks:  []Watch{{Object: &corev1.ConfigMap{}}, {Object: &corev1.ConfigMap{}, Cluster: "remote"}},
		Indexes: []Index{{Object: &corev1.ConfigMap{}, Field: ownerIndex}},
	})
}

func TestRecordSubReconciler_Kinds(t *testing.T) {
	configMaps := func(reconcilers.Config) reconcilers.SubReconciler[client.Object] {
		return &reconcilers.SyncReconciler[client.Object]{
			Sync: func(context.Context, client.Object) error { return nil },
			Setup: func(_ context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
				bldr.Owns(&corev1.ConfigMap{})
				return nil
			},
		}
	}
	for name, resource := range map[string]client.Object{
		"typed":        &fixture.Resource{},
		"duck":         fixture.NewDuck("", ""),
		"unstructured": unstructuredKind("example.com/v1", "Website"),
	} {
		wiring, err := recordSubReconciler(t.Context(), wiringScheme(t), resource, configMaps, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wiring.Assert(t, &Wiring{Owns: watchesOf(&corev1.ConfigMap{})})
	}
	_, err := recordSubReconciler(t.Context(), wiringScheme(t), client.Object(&unknownKind{}), configMaps, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no kind is registered") {
		t.Errorf("an unknown kind: %v", err)
	}
}

// Factories that prepare the client of a case do so when they are called for the wiring, too.
func TestExpectWiring_FactoryWithReactor(t *testing.T) {
	called := 0
	SubReconcilerTests[*fixture.Resource]{
		"case": {
			Resource:     &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test"}},
			ExpectWiring: &Wiring{},
		},
	}.Run(t, wiringScheme(t), func(
		_ *testing.T, _ *SubReconcilerTestCase[*fixture.Resource], c reconcilers.Config,
	) reconcilers.SubReconciler[*fixture.Resource] {
		called++
		fake := c.Client.(TestClient)
		fake.AddReactor("get", "*", func(Action) (bool, runtime.Object, error) { return false, nil, nil })
		fake.PrependReactor("list", "*", func(Action) (bool, runtime.Object, error) { return false, nil, nil })
		fake.AddGiven(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "given"}})
		return &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(context.Context, *fixture.Resource) error { return nil },
		}
	})
	if called != 2 {
		t.Errorf("the factory was called %d times, want 2", called)
	}
}
