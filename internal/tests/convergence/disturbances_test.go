// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// TestIdentity_Disturbed proves that the children of a resource are managed, and nothing else is, at whatever moment
// users edit a label or another client creates an object.
func TestIdentity_Disturbed(t *testing.T) {
	single := func(name func(*corev1.ConfigMap)) func() sub {
		return func() sub {
			return newChild(func(cm *corev1.ConfigMap) {
				name(cm)
				cm.Labels = map[string]string{"id": "x"}
			})
		}
	}
	for name, build := range map[string]func() sub{
		"child, fixed name":     single(fixedName),
		"child, generated name": single(generatedName),
		"set, fixed names": func() sub {
			return newChildSet(func(child *corev1.ConfigMap, id string) { child.Name = "child-" + id })
		},
	} {
		t.Run(name, func(t *testing.T) {
			resource := newResource("one")
			setField("children", "x y")(resource)
			s := under(t, func(converge.Env) sub { return build() })
			s.ManagedFields = true
			s.Disturbances = converge.Steps(
				labelOfEach(resource, "id", "other"), converge.CreateOwned(resource, foreign(), "kubectl"),
			)
			s.Steps = converge.Lifecycle(resource, setField("value", "two"))
			proveWith(t, s, 5_000)
		})
	}
}

// pauseOf pauses a resource, or lets it resume.
func pauseOf(resource *fixture.Resource, value string) converge.Step {
	return converge.Change(resource, func(r *fixture.Resource) {
		if metav1.SetMetaDataAnnotation(&r.ObjectMeta, reconcilers.AnnotationPaused, value); value == "" {
			delete(r.Annotations, reconcilers.AnnotationPaused)
		}
	})
}

// TestPaused_AtAnyMoment proves that a resource which users pause between any two requests, and change meanwhile,
// follows its spec once it resumes. It finds a controller whose predicate drops the change of the annotation.
func TestPaused_AtAnyMoment(t *testing.T) {
	for name, test := range map[string]struct {
		filter predicate.Predicate
		found  converge.Cause
	}{
		"all events": {predicate.Funcs{}, ""},
		"generations and annotations": {
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}), "",
		},
		"generations only": {predicate.GenerationChangedPredicate{}, converge.CauseObservedGeneration},
	} {
		t.Run(name, func(t *testing.T) {
			resource := newResource("one")
			s := under(t, nil)
			s.Setup = func(mgr ctrl.Manager) error {
				root := &reconcilers.ResourceReconciler[*fixture.Resource]{
					Reconciler: paused(newChild(fixedName)), Config: reconcilers.NewConfig(mgr, nil, time.Hour),
					Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
						bldr.WithEventFilter(predicate.Or(test.filter, predicate.NewPredicateFuncs(func(obj client.Object) bool {
							_, child := obj.(*corev1.ConfigMap)
							return child
						})))
						return nil
					},
				}
				return root.SetupWithManager(t.Context(), mgr)
			}
			s.Without = map[converge.Fault]string{converge.FaultChildDeleted: "a paused resource restores nothing"}
			s.Except = []converge.Exception{{
				Oracle: converge.OracleStatus, Step: 6, Reason: "a paused resource is not written",
			}}
			s.Steps = converge.Steps(
				converge.Apply(resource), converge.Settle(), pauseOf(resource, "yes"), converge.Settle(),
				converge.Change(resource, setField("value", "two")), converge.Settle(), pauseOf(resource, ""),
				converge.Settle(), converge.Delete(resource), converge.Settle(),
			)
			if test.found == "" {
				proveWith(t, s, 5_000)
				return
			}
			report, err := converge.Check(t, s, converge.Options{Seed: 1, SingleRequests: 5_000})
			if err != nil {
				t.Fatal(err)
			}
			if report.Failure == nil || report.Failure.Violation.Cause != test.found {
				t.Errorf("want %s, got %v", test.found, report.Failure)
			}
		})
	}
}
